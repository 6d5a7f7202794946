"""The sample models: complete, small, and computed by the engine as PyTorch computed them.

The golden activations come from PyTorch's operators (``samples/golden.py``); nothing of the
engine took part in making them.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import engine
from engine.inputs import ImageOptions, load_inputs, parse_source

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = ("digits", "expressions", "gaze", "linear", "unet")
TOLERANCE = 1e-4


@pytest.fixture(params=NAMES)
def folder(request):
    return SAMPLES / request.param


def described(folder):
    return json.loads((folder / "sample.json").read_text(encoding="utf-8"))


def golden(folder):
    with np.load(folder / "golden.npz", allow_pickle=False) as archive:
        return dict(archive)


def param_lines(folder):
    """Type, name, inputs, outputs and the key=value tokens of each operator."""
    text = (folder / described(folder)["model"]).read_text(encoding="utf-8")
    for line in text.splitlines()[2:]:
        kind, name, n_in, n_out, *rest = line.split()
        inputs, rest = rest[: int(n_in)], rest[int(n_in) :]
        outputs, tokens = rest[: int(n_out)], rest[int(n_out) :]
        yield kind, name, inputs, outputs, tokens


def named_leaves(name, value):
    """Item i of a tuple-valued operand N is called N[i], however deep."""
    if isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from named_leaves(f"{name}[{i}]", item)
    else:
        yield name, np.asarray(value)


def picture_tensor(path, image):
    """Preprocess a picture of the right size, by hand."""
    pixels = np.asarray(Image.open(path).convert("L" if image["order"] == "GRAY" else "RGB"))
    channels = np.atleast_3d(pixels).astype(np.float64) * image["scale"]
    return (((channels - image["mean"]) / image["std"]).transpose(2, 0, 1)[None]).astype("f4")


def mean_overlap(found, truth):
    kinds = np.unique(truth)
    return np.mean(
        [
            ((found == k) & (truth == k)).sum() / ((found == k) | (truth == k)).sum()
            for k in kinds
        ]
    )


# What is stored


def test_these_are_all_the_samples():
    assert tuple(sorted(path.parent.name for path in SAMPLES.glob("*/sample.json"))) == NAMES


def test_the_samples_are_small():
    size = sum(f.stat().st_size for name in NAMES for f in (SAMPLES / name).iterdir())
    assert size < 8_000_000


def test_a_folder_holds_exactly_what_it_lists(folder):
    assert sorted(path.name for path in folder.iterdir()) == described(folder)["files"]


def test_the_description_says_all_that_the_application_reads(folder):
    sample = described(folder)
    assert sample["format"] == 1
    assert sample["name"] == folder.name
    assert sample["title"]
    assert re.fullmatch(r"[A-Z][^.]*\.", sample["description"]), "one sentence"
    named = [sample["model"], sample["weights"], sample["golden"], sample["labels"]]
    for entry in sample["inputs"]:
        named += [entry["file"], *entry["alternatives"]]
    assert {name for name in named if name} <= set(sample["files"])
    assert sample["facts"]["operators"] == len(list(param_lines(folder)))


def test_picture_inputs_say_how_they_are_prepared(folder):
    sample = described(folder)
    pictures = [x["file"] for x in sample["inputs"] if x["file"].endswith(".png")]
    assert bool(pictures) == (sample["image"] is not None)
    if sample["image"] is None:
        return
    image = sample["image"]
    assert image.keys() == {"size", "order", "scale", "mean", "std"}
    assert image["order"] in {"RGB", "BGR", "GRAY"}
    channels = 1 if image["order"] == "GRAY" else 3
    assert len(image["mean"]) == len(image["std"]) == channels
    for name in pictures:
        with Image.open(folder / name) as picture:
            assert [picture.height, picture.width] == image["size"]


def test_inputs_are_listed_in_the_models_order(folder):
    operands = [outputs[0] for kind, _, _, outputs, _ in param_lines(folder) if "Input" in kind]
    listed = described(folder)["inputs"]
    assert [entry["operand"] for entry in listed] == operands
    assert [entry["index"] for entry in listed] == list(range(len(operands)))


def test_input_files_become_the_golden_inputs(folder):
    sample, values = described(folder), golden(folder)
    for entry in sample["inputs"]:
        path = folder / entry["file"]
        if path.suffix == ".png":
            expected = picture_tensor(path, sample["image"])
        else:
            expected = np.load(path, allow_pickle=False)
        np.testing.assert_allclose(values[entry["operand"]], expected, rtol=1e-6, atol=1e-6)


def test_every_operand_has_golden_values(folder):
    operands = {name for _, _, _, outputs, _ in param_lines(folder) for name in outputs}
    assert {name.partition("[")[0] for name in golden(folder)} == operands


def test_golden_values_have_the_shapes_and_types_that_pnnx_wrote(folder):
    types = {"f32": np.float32, "i64": np.int64}
    values = golden(folder)
    for *_, tokens in param_lines(folder):
        for token in tokens:
            if not token.startswith("#"):
                continue
            name, dims, dtype = re.fullmatch(r"#(\w+)=\((.*)\)(\w+)", token).groups()
            assert values[name].dtype == types[dtype], token
            written = dims.split(",")
            assert len(written) == values[name].ndim, token
            for dim, size in zip(written, values[name].shape, strict=True):
                assert dim in {"?", str(size)}, token


def test_golden_values_are_finite(folder):
    assert all(np.isfinite(value).all() for value in golden(folder).values())


def test_the_weights_are_those_that_the_param_file_names(folder):
    wanted = {
        f"{name}.{token[1:].partition('=')[0]}"
        for _, name, _, _, tokens in param_lines(folder)
        for token in tokens
        if token.startswith("@")
    }
    with zipfile.ZipFile(folder / described(folder)["weights"]) as archive:
        assert set(archive.namelist()) == wanted


def test_samples_cover_several_ranks_and_outputs():
    values = golden(SAMPLES / "expressions")
    assert {value.ndim for value in values.values()} >= {1, 2, 4, 5}
    assert any(name.count("[") == 2 for name in values), "a tuple inside a tuple"
    many = {
        kind for kind, _, _, outs, _ in param_lines(SAMPLES / "expressions") if len(outs) > 1
    }
    assert many == {"torch.chunk", "torch.split", "F.max_pool2d"}


def test_digits_states_an_accuracy_of_97_percent():
    facts = described(SAMPLES / "digits")["facts"]
    assert facts["held_out_accuracy"] >= 0.97
    with np.load(SAMPLES / "digits" / "held_out.npz", allow_pickle=False) as held:
        assert held["pictures"].shape == (facts["held_out"], 32, 32)
        assert np.bincount(held["labels"]).min() > 30


def test_digits_has_a_picture_and_a_label_for_each_class():
    folder = SAMPLES / "digits"
    assert (folder / "labels.txt").read_text(encoding="utf-8").split() == list("0123456789")
    assert len(list(folder.glob("digit_?.png"))) == 10


def test_unet_states_its_overlap_and_shows_it():
    folder = SAMPLES / "unet"
    facts = described(folder)["facts"]
    assert facts["held_out_mean_iou"] == pytest.approx(
        np.mean(list(facts["held_out_iou"].values())), abs=1e-3
    )
    assert facts["held_out_mean_iou"] >= 0.85
    truth = np.asarray(Image.open(folder / "truth_1.png"))
    last = max(golden(folder), key=int)
    assert mean_overlap(golden(folder)[last][0].argmax(0), truth) > 0.9


# What the engine makes of it


def loaded(folder):
    sample = described(folder)
    graph = engine.load(folder / sample["model"], folder / sample["weights"])
    return sample, graph


@pytest.mark.golden
@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_the_engine_computes_every_operand_as_pytorch(folder, backend):
    sample, graph = loaded(folder)
    expected = golden(folder)
    session = engine.Session(graph, backend=backend)
    session.feed([expected[entry["operand"]] for entry in sample["inputs"]])
    session.run()
    computed = {}
    for name in graph.operands:
        computed |= dict(named_leaves(name, session.value(name)))
    require_the_same(computed, expected)


def require_the_same(computed, expected):
    """PyTorch too sums in another order on another processor: it is off by 4e-5 on some."""
    assert computed.keys() == expected.keys()
    for name, value in expected.items():
        assert computed[name].dtype == value.dtype, name
        # Sums of a score are exact to a share of their terms, however small they are.
        largest = max(1.0, float(np.abs(value).max(initial=0)))
        np.testing.assert_allclose(
            computed[name],
            value,
            rtol=TOLERANCE,
            atol=TOLERANCE * largest,
            err_msg=f"operand {name}",
        )


@pytest.mark.golden
def test_the_engine_reads_the_input_files_as_the_model_was_trained(folder):
    sample, graph = loaded(folder)
    image = sample["image"] or {}
    kept = {key: tuple(image[key]) for key in ("size", "mean", "std") if key in image}
    options = ImageOptions(**kept)
    sources = [parse_source(str(folder / entry["file"])) for entry in sample["inputs"]]
    expected = golden(folder)
    for name, value in load_inputs(sources, graph.input_operands, options).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-6, atol=1e-6)


@pytest.mark.golden
@pytest.mark.slow
def test_the_engine_reads_held_out_digits_as_well_as_stated():
    sample, graph = loaded(SAMPLES / "digits")
    with np.load(SAMPLES / "digits" / "held_out.npz", allow_pickle=False) as held:
        pictures, labels = held["pictures"], held["labels"]
    inputs = pictures[:, None].astype(np.float32) * np.float32(sample["image"]["scale"])
    session = engine.Session(graph)
    right = 0
    for start in range(0, len(inputs), 60):  # in parts, to take little memory
        session.feed([inputs[start : start + 60]])
        session.run()
        right += int((session.outputs()[0].argmax(1) == labels[start : start + 60]).sum())
    accuracy = right / len(labels)
    assert accuracy >= 0.97
    # One digit more or less may tip over where the best two classes are close.
    assert accuracy == pytest.approx(
        sample["facts"]["held_out_accuracy"], abs=1.5 / len(labels)
    )


@pytest.mark.golden
@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_engine_finds_the_shapes_in_every_scene(number):
    folder = SAMPLES / "unet"
    sample, graph = loaded(folder)
    session = engine.Session(graph)
    session.feed([picture_tensor(folder / f"scene_{number}.png", sample["image"])])
    session.run()
    truth = np.asarray(Image.open(folder / f"truth_{number}.png"))
    assert mean_overlap(session.outputs()[0][0].argmax(0), truth) > 0.85


# The evaluator that makes the golden values, where PyTorch is there


@pytest.fixture
def golden_module(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(SAMPLES)
    import golden as module

    return module


@pytest.mark.golden
@pytest.mark.slow
def test_pytorch_gives_the_stored_values_again(golden_module, folder):
    import torch

    sample, expected = described(folder), golden(folder)
    inputs = [torch.from_numpy(expected[entry["operand"]]) for entry in sample["inputs"]]
    with torch.no_grad():
        values, _ = golden_module.run_pair(
            folder / sample["model"], folder / sample["weights"], inputs
        )
    require_the_same(golden_module.as_arrays(values), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add(@0,mul(@1,2))", [9.0, 12.0]),
        ("sub(1,@0)", [0.0, -1.0]),
        ("pow(2,@0)", [2.0, 4.0]),
        ("div(@1,size(@0,0))", [2.0, 2.5]),
        ("max(@0,minimum(@1,4.5))", [4.0, 4.5]),
        ("mul(@0,-1.500000e+00)", [-1.5, -3.0]),
    ],
)
def test_the_evaluator_computes_expressions(golden_module, text, expected):
    import torch

    operands = (torch.tensor([1.0, 2.0]), torch.tensor([4.0, 5.0]))
    assert golden_module.evaluate_expression(text, operands).tolist() == expected


@pytest.mark.parametrize("text", ["add(@0,@0)@0", "__import__('os')", "add(@0;1)"])
def test_the_evaluator_refuses_what_is_no_expression(golden_module, text):
    import torch

    with pytest.raises((ValueError, IndexError)):
        golden_module.evaluate_expression(text, (torch.ones(1),))
