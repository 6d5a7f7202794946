"""Tables, int8 pairs and their errors, against ncnn, hand-computed cases and slow loops."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace

import int8_pairs
import numpy as np
import pytest
from ncnn_files import F16, f32, tagged, write_pair

import engine
from engine.datasets import SweepOptions, WorkerPool, sweep
from engine.datasets.calibration import (
    REPORT,
    TABLE,
    CalibrationOptions,
    CalibrationStudy,
    LayerScales,
    Magnitudes,
    calibrate,
    calibrate_sweep,
    format_table,
    ncnn_pair_of,
    parse_table,
    quantisable_layers,
)
from engine.datasets.calibration.held_out import HeldOutRuns, runs_here
from engine.datasets.calibration.int8_pair import write_int8_pair
from engine.datasets.calibration.layers import int8_twin, weight_scales
from engine.datasets.calibration.ncnn2table import run_ncnn2table
from engine.datasets.page import write_summary_page
from engine.errors import EngineError, SweepError

RNG = np.random.default_rng(11)
NUMPY = CalibrationOptions(backend="numpy")
LINES = [
    "Input in0 0 1 in0",
    "Convolution wide 1 1 in0 a 0=6 1=3 4=1 5=1 6=162 9=1",
    "ConvolutionDepthWise deep 1 1 a b 0=6 1=3 3=2 5=1 6=108 7=3",
    "Swish act 1 1 b c",
    "Convolution one 1 1 c d 0=4 1=1 5=0 6=24",
    "Pooling mean 1 1 d e 0=1 4=1",
    "InnerProduct fc 1 1 e out0 0=5 1=1 2=20",
]


def draw(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


WEIGHTS = [draw(6, 27), draw(6), draw(3, 36), draw(6), draw(4, 6), draw(5, 4), draw(5)]
IMAGES = [draw(3, 12, 12) for _ in range(8)]


def network_bytes(first=WEIGHTS[0], tag=0):
    _, *others = WEIGHTS
    wide = tagged(first, tag) + f32(others[0])
    deep = tagged(others[1]) + f32(others[2])
    return wide + deep + tagged(others[3]) + tagged(others[4]) + f32(others[5])


@pytest.fixture
def param(tmp_path):
    return write_pair(tmp_path, LINES, network_bytes())


@pytest.fixture
def graph(param):
    return engine.load(param)


def inputs_of(images):
    return lambda: ({"in0": image} for image in images)


def runs_of(graph, images):
    """What measures on images, in this process and in NumPy."""
    return lambda scales: nullcontext(
        runs_here(HeldOutRuns(graph, scales, "numpy", lambda: None), inputs_of(images))
    )


def names_of(graph):
    return [layer.name for layer in quantisable_layers(graph)]


def magnitudes_of(graph, images):
    """The inputs of the layers, by sessions in NumPy."""
    found = {layer.name: Magnitudes() for layer in quantisable_layers(graph)}
    for image in images:
        session = engine.Session(graph, "numpy")
        session.feed([image])
        session.run()
        for layer in quantisable_layers(graph):
            found[layer.name].add(session.value(layer.inputs[0].name))
    return found


def minmax_scales(graph, images, *, winograd=False):
    seen = magnitudes_of(graph, images)
    return {
        layer.name: LayerScales(
            weight_scales(layer, winograd=winograd), 127 / seen[layer.name].largest
        )
        for layer in quantisable_layers(graph)
    }


class TestLayers:
    def test_only_what_a_table_quantises(self, tmp_path, graph):
        assert [each.name for each in quantisable_layers(graph)] == [
            "wide",
            "deep",
            "one",
            "fc",
        ]
        int8 = int8_pairs.write_int8_pair(graph.param_path, [IMAGES[0]], tmp_path, skip=["one"])
        assert names_of(engine.load(int8)) == ["one"]

    def test_weights_that_are_not_finite_stay(self, tmp_path):
        weight = WEIGHTS[0].copy()
        weight[2, 3] = np.inf
        found = engine.load(write_pair(tmp_path, LINES, network_bytes(weight)))
        assert "wide" not in names_of(found)

    def test_scales_of_weights_by_a_loop(self, graph):
        wide, deep, one, fc = quantisable_layers(graph)
        for layer, rows, largest in (
            (wide, WEIGHTS[0], 31), (deep, WEIGHTS[2], 127), (one, WEIGHTS[4], 127),
            (fc, WEIGHTS[5], 127),
        ):  # fmt: skip
            expected = [largest / max(abs(float(w)) for w in row) for row in rows]
            np.testing.assert_allclose(weight_scales(layer), expected, 1e-6)
        exact = [127 / max(abs(float(w)) for w in row) for row in WEIGHTS[0]]
        np.testing.assert_allclose(weight_scales(wide, winograd=False), exact, 1e-6)

    def test_a_channel_of_zeros_has_the_scale_1(self, tmp_path):
        weight = WEIGHTS[0].copy()
        weight[4] = 0
        wide = quantisable_layers(
            engine.load(write_pair(tmp_path, LINES, network_bytes(weight)))
        )[0]
        assert weight_scales(wide)[4] == 1

    def test_a_twin_by_hand(self, tmp_path):
        lines = ["Input in0 0 1 in0", "InnerProduct f 1 1 in0 out0 0=1 1=1 2=2"]
        path = write_pair(tmp_path, lines, tagged(np.float32([1, -0.25])) + f32([0.5]))
        (layer,) = quantisable_layers(engine.load(path))
        twin = int8_twin(layer, LayerScales(weight_scales(layer), 10.0))
        # Weights 127 and round(-31.75) = -32; inputs 10 and round(2.5) = 3, halves away from 0.
        expected = (127 * 10 - 32 * 3) / 127 / 10 + 0.5
        assert twin.forward([np.float32([1, 0.25])])[0] == pytest.approx(expected)
        assert layer.forward([np.float32([1, 0.25])])[0] == pytest.approx(1.4375)


class TestTables:
    def test_lines_and_reading_back(self):
        scales = {
            "a": LayerScales(np.float32([1 / 3, 1e-9, 2e30]), 0.1),
            "b_1": LayerScales(np.float32([7]), 12.5),
        }
        text = format_table(scales)
        assert text.split("\n")[1:] == ["b_1_param_0 7", "a 0.1", "b_1 12.5", ""]
        found = parse_table(text)
        assert list(found) == ["a", "b_1"]
        assert found["a"].weight.tolist() == scales["a"].weight.tolist()
        assert (found["a"].activation, found["b_1"].activation) == (0.1, 12.5)

    def test_kept_layers_are_comments(self):
        scales = {
            "a": LayerScales(np.float32([1]), 2.0),
            "b": LayerScales(np.float32([3]), 4.0),
        }
        text = format_table(scales, ["a"])
        assert text == "#a_param_0 1\nb_param_0 3\n#a 2\nb 4\n"
        assert list(parse_table(text)) == ["b"]

    def test_as_ncnn2table_writes_it(self):
        text = "c_param_0 1.500000 2.500000 \nm_param_1 3.0 \nc 4.250000 \n"
        found = parse_table(text)
        assert (list(found), found["c"].weight.tolist()) == (["c"], [1.5, 2.5])

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("c_param_0 1 x\nc 2", "line 1 of the table: 'x' is not a finite scale"),
            ("c_param_0 1\nc inf", "line 2 of the table: 'inf'"),
            ("\nc 2", "line 2 of the table: layer c needs"),
            ("c_param_0 1\nc 2 3", "layer c needs one scale"),
        ],
    )
    def test_damaged_ones(self, text, reason):
        with pytest.raises(EngineError, match=reason):
            parse_table(text)


class TestInt8Pairs:
    def test_equals_one_that_is_written_by_other_code(self, tmp_path, graph):
        expected = int8_pairs.write_int8_pair(graph.param_path, [IMAGES[0]], tmp_path)
        scales = minmax_scales(graph, IMAGES[:1])
        found, weights = write_int8_pair(graph, scales, tmp_path / "ours.param")
        assert weights.read_bytes() == expected.with_suffix(".bin").read_bytes()
        words = [line.split() for line in found.read_text().splitlines()]
        assert words[1:] == [line.split() for line in expected.read_text().splitlines()[1:]]

    def test_layers_without_scales_keep_their_storage(self, tmp_path):
        data = network_bytes(WEIGHTS[0].astype(np.float16), F16)
        graph = engine.load(write_pair(tmp_path, LINES, data))
        scales = minmax_scales(graph, IMAGES[:1])
        del scales["wide"]
        found = engine.load(write_int8_pair(graph, scales, tmp_path / "ours.param")[0])
        stored = {
            each.name: each.attributes["weight"].stored_dtype
            for each in found.operators
            if each.has_attributes
        }
        assert stored == {"wide": "f16", "deep": "i8", "one": "i8", "fc": "i8"}

    def test_ncnn_loads_it_and_numpy_agrees(self, tmp_path, graph):
        ncnn = pytest.importorskip("ncnn")
        scales = minmax_scales(graph, IMAGES, winograd=True)
        path, weights = write_int8_pair(graph, scales, tmp_path / "ours.param")
        net = ncnn.Net()
        for name in ("packed", "storage", "arithmetic"):
            setattr(net.opt, f"use_fp16_{name}", False)
        assert net.load_param(str(path)) == 0
        assert net.load_model(str(weights)) == 0
        for image in IMAGES[:3]:
            session = engine.Session(engine.load(path), "numpy")
            session.feed([image])
            session.run()
            with net.create_extractor() as extractor:
                extractor.input("in0", ncnn.Mat(image).clone())
                _, out = extractor.extract("out0")
                np.testing.assert_allclose(np.array(out), session.outputs()[0], 1e-4, 1e-4)

    def test_a_barred_transform_is_in_the_mask(self, tmp_path):
        lines = [*LINES]
        lines[1] += " 31=1"
        graph = engine.load(write_pair(tmp_path, lines, network_bytes()))
        scales = {"wide": LayerScales(np.ones(6, np.float32), 1.0, bars_winograd=True)}
        path, _ = write_int8_pair(graph, scales, tmp_path / "ours.param")
        assert path.read_text().splitlines()[3].split()[-2:] == ["8=2", "31=65"]

    def test_an_unknown_layer_is_refused(self, tmp_path):
        path = write_pair(tmp_path, [*LINES, "aten::what x 1 1 out0 y"], network_bytes())
        with pytest.raises(EngineError, match="aten::what, which ncnn does not know"):
            write_int8_pair(engine.load(path), {}, tmp_path / "ours.param")


class TestCalibration:
    def test_errors_by_other_sessions(self, tmp_path, graph):
        """The losses of min-max, from sessions in NumPy and sums written out."""
        folder = tmp_path / "out"
        folder.mkdir()
        held_out = IMAGES[5:]
        found = calibrate(
            graph, magnitudes_of(graph, IMAGES[:5]), runs_of(graph, held_out),
            inputs_of(IMAGES[:5]), folder, CalibrationOptions("minmax", backend="numpy"),
        )  # fmt: skip
        scales = minmax_scales(graph, IMAGES[:5], winograd=True)
        int8 = engine.load(write_int8_pair(graph, scales, tmp_path / "other.param")[0])
        sums = {name: np.zeros(2) for name in ("wide", "deep", "one", "fc", "output")}
        for image in held_out:
            exact, low = engine.Session(graph, "numpy"), engine.Session(int8, "numpy")
            for session in (exact, low):
                session.feed([image])
                session.run()
            for name in sums.keys() - {"output"}:
                operator = graph.operator(name)
                expected = exact.value(operator.outputs[0].name)
                (alone,) = int8.operator(name).forward([exact.value(operator.inputs[0].name)])
                sums[name] += (expected**2).sum(), ((alone - expected) ** 2).sum()
            expected, alone = exact.outputs()[0], low.outputs()[0]
            sums["output"] += (expected**2).sum(), ((alone - expected) ** 2).sum()
        for layer in found.layers:
            signal, noise = sums[layer.operator.name]
            loss = layer.losses["minmax"].loss
            assert loss.snr == pytest.approx(10 * np.log10(signal / noise), abs=0.02)
        signal, noise = sums["output"]
        whole = found.output["minmax"]
        assert whole.loss.snr == pytest.approx(10 * np.log10(signal / noise), abs=0.02)
        assert whole.inputs == 3

    def test_single_layers_of_a_branched_network_by_other_sessions(self, tmp_path):
        lines = [
            "Input in0 0 1 in0",
            "Split split 1 2 in0 a b",
            "Convolution left 1 1 a l 0=4 1=1 5=0 6=12",
            "Convolution right 1 1 b r 0=4 1=3 4=1 5=0 6=108",
            "BinaryOp sum 2 1 l r s 0=0",
            "Convolution last 1 1 s out0 0=2 1=1 5=0 6=8",
        ]
        weights = b"".join(map(tagged, (draw(4, 3), draw(4, 27), draw(2, 4))))
        graph = engine.load(write_pair(tmp_path, lines, weights))
        images = IMAGES[:3]
        found = calibrate(
            graph, magnitudes_of(graph, images), runs_of(graph, images), inputs_of(images),
            tmp_path, CalibrationOptions("minmax", backend="numpy"),
        )  # fmt: skip
        scales = minmax_scales(graph, images, winograd=True)
        for name in ("left", "right", "last"):
            one = write_int8_pair(graph, {name: scales[name]}, tmp_path / f"{name}.param")[0]
            signal = noise = 0.0
            for image in images:
                exact, low = (
                    engine.Session(each, "numpy") for each in (graph, engine.load(one))
                )
                for session in (exact, low):
                    session.feed([image])
                    session.run()
                expected = exact.outputs()[0]
                signal += (expected**2).sum()
                noise += ((low.outputs()[0] - expected) ** 2).sum()
            alone = found.harm.alone[graph.operator(name).index]
            assert alone.snr == pytest.approx(10 * np.log10(signal / noise), abs=0.02)

    def test_files(self, tmp_path, graph):
        found = calibrate(
            graph, magnitudes_of(graph, IMAGES), runs_of(graph, IMAGES[:2]), inputs_of(IMAGES),
            tmp_path, CalibrationOptions("kl", winograd=False, backend="numpy"),
        )  # fmt: skip
        report = json.loads((tmp_path / REPORT).read_text())
        assert report == json.loads(json.dumps(found.to_json()))
        table = parse_table((tmp_path / TABLE).read_text())
        for facts in report["layers"]:
            scale = facts["thresholds"]["kl"]["scale"]
            assert table[facts["name"]].activation == pytest.approx(scale, rel=1e-8)
            assert facts["weight_bits"] == 8
            assert facts["output_alone"]["snr_db"] > 15
        pair = engine.load(tmp_path / "int8.ncnn.param")
        assert pair.operator("wide").params["featmask"] == 64
        assert not quantisable_layers(pair)

    def test_layers_are_kept_for_a_wanted_error(self, tmp_path, graph):
        arguments = magnitudes_of(graph, IMAGES), runs_of(graph, IMAGES[:3]), inputs_of(IMAGES)
        first = calibrate(graph, *arguments, tmp_path, NUMPY)
        wanted = first.output["kl"].loss.relative / 2
        options = replace(NUMPY, wanted_error=wanted)
        found = calibrate(graph, *arguments, tmp_path, options)
        kept = [graph.operators[index].name for index in found.harm.kept]
        assert 0 < len(kept) < 4
        assert found.kept.loss.relative <= wanted
        assert list(parse_table((tmp_path / TABLE).read_text()).keys() & set(kept)) == []
        facts = found.to_json()["keep_float32"]
        assert (facts["reached"], facts["layers"]) == (True, kept)
        pair = engine.load(tmp_path / "int8.ncnn.param")
        assert [layer.name for layer in quantisable_layers(pair)] == kept

    def test_a_layer_whose_input_is_always_0(self, tmp_path, graph):
        seen = magnitudes_of(graph, IMAGES)
        seen["one"] = Magnitudes()
        seen["one"].add(np.zeros(4, np.float32))
        del seen["fc"]
        found = calibrate(
            graph, seen, runs_of(graph, IMAGES[:1]), inputs_of([]), tmp_path, NUMPY
        )
        assert found.left == {
            "one": "its input is always 0",
            "fc": "no input of it has finite numbers",
        }
        assert list(parse_table((tmp_path / TABLE).read_text())) == ["wide", "deep"]

    def test_a_model_without_such_layers(self, tmp_path):
        path = write_pair(tmp_path, ["Input in0 0 1 in0", "ReLU r 1 1 in0 out0"])
        with pytest.raises(EngineError, match="the model has no Convolution"):
            calibrate(engine.load(path), {}, runs_of(None, []), inputs_of([]), tmp_path)


class TestSweeps:
    """The same through a sweep, whose tasks are merged."""

    @pytest.fixture
    def swept(self, tmp_path, graph):
        np.save(tmp_path / "set.npy", np.stack(IMAGES))
        study = CalibrationStudy(every=4)
        options = SweepOptions(statistics=False, studies=(study,), shard=3, backend="numpy")
        folder = tmp_path / "out"
        found = sweep(graph, tmp_path / "set.npy", folder, options, workers=0)
        return found, study, options

    def test_counts_are_those_of_one_pass(self, swept, graph):
        found, study, _ = swept
        counted = [image for index, image in enumerate(IMAGES) if index not in {3, 7}]
        expected = magnitudes_of(graph, counted)
        arrays = found.study(study.name)
        for place, layer in enumerate(quantisable_layers(graph)):
            for name, array in expected[layer.name].to_arrays().items():
                assert np.array_equal(arrays[name][place], array)

    def test_the_table_is_in_its_folder(self, swept, graph):
        found, study, options = swept
        done = []
        calibration = calibrate_sweep(
            found, graph, study, options, CalibrationOptions("minmax", backend="numpy"),
            done.append, workers=0,
        )  # fmt: skip
        assert calibration.output["minmax"].inputs == 2
        assert done == list(range(len(done)))
        counted = [image for index, image in enumerate(IMAGES) if index not in {3, 7}]
        largest = max(float(np.abs(image).max()) for image in counted)
        table = parse_table((found.path / TABLE).read_text())
        assert table["wide"].activation == pytest.approx(127 / largest, rel=1e-6)
        page = write_summary_page(found).read_text()
        assert "Calibration for int8 (4 layers)" in page
        assert page.count("<td>All layers in int8, ") == 4
        snr = calibration.output["minmax"].loss.snr
        assert f'<td>All layers in int8, minmax</td><td class="n">{snr:.1f}</td>' in page

    def test_workers_measure_the_same(self, swept, graph):
        pytest.importorskip("distributed")
        found, study, options = swept
        chosen = CalibrationOptions("kl", wanted_error=1e-3, backend="numpy")
        written, runs = [], []
        for workers in (0, 2):
            done = []
            calibrate_sweep(found, graph, study, options, chosen, done.append, workers=workers)
            written.append(
                [
                    (found.path / name).read_bytes()
                    for name in (TABLE, REPORT, "int8.ncnn.param", "int8.ncnn.bin")
                ]
            )
            runs.append(done[-1] + (workers == 0))  # here it is told before each run
        assert written[0] == written[1]
        assert runs[0] <= runs[1]  # what another worker has run is run again

    def test_the_workers_of_the_sweep_measure(self, swept, graph, tmp_path):
        pytest.importorskip("distributed")
        import psutil

        def processes():
            return {each.pid for each in psutil.Process().children(recursive=True)}

        alone, study, options = swept
        before = processes()
        with WorkerPool(1) as pool:
            assert processes() == before
            data = tmp_path / "set.npy"
            found = sweep(graph, data, tmp_path / "pooled", options, workers=pool)
            swept_by = processes()
            mine = calibrate_sweep(found, graph, study, options, workers=pool)
            assert processes() == swept_by > before
        assert not processes() & (swept_by - before)
        theirs = calibrate_sweep(alone, graph, study, options, workers=0)
        assert mine.to_json() == theirs.to_json()
        with pytest.raises(SweepError, match="a scheduler has its own workers"):
            sweep(graph, data, tmp_path / "other", workers=pool, scheduler="tcp://nowhere:1")

    def test_a_script_that_its_workers_run_again_is_told_so(self, swept, graph, tmp_path):
        pytest.importorskip("distributed")
        found, _, _ = swept
        script = tmp_path / "script.py"
        script.write_text(
            "import engine\nfrom engine.datasets.calibration import *\n"
            "from engine.errors import SweepError\n"
            f"graph = engine.load({str(graph.param_path)!r})\n"
            f"found = engine.open_sweep({str(found.path)!r})\n"
            "study, options = CalibrationStudy(every=4), engine.SweepOptions()\ntry:\n"
            "    calibrate_sweep(found, graph, study, options, workers=1)\n"
            "except SweepError as exc:\n    print(exc)\n"
        )
        ended = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, check=False, timeout=120
        )
        assert "must call engine.sweep under" in ended.stdout
        assert ended.returncode == 0

    def test_a_sweep_of_other_operators(self, tmp_path, graph):
        np.save(tmp_path / "set.npy", np.stack(IMAGES))
        options = SweepOptions(studies=(CalibrationStudy(),), operators=("act",))
        with pytest.raises(SweepError, match="leave --operators out"):
            sweep(graph, tmp_path / "set.npy", tmp_path / "out", options, workers=0)

    def test_a_model_without_such_layers(self, tmp_path):
        path = write_pair(tmp_path, ["Input in0 0 1 in0", "ReLU r 1 1 in0 out0"])
        np.save(tmp_path / "set.npy", np.stack(IMAGES))
        options = SweepOptions(studies=(CalibrationStudy(),), statistics=False)
        with pytest.raises(SweepError, match="the model has no Convolution"):
            sweep(path, tmp_path / "set.npy", tmp_path / "out", options, workers=0)


def test_the_pair_beside_a_pnnx_model(tmp_path, param, make_pair):
    model = make_pair("pnnx.Input in 0 1 x #x=(1,2)f32", "pnnx.Output out 1 0 x")
    named, alone = tmp_path / "m.pnnx.param", tmp_path / "other.pnnx.param"
    for path in (named, alone):
        path.write_bytes(model.read_bytes())
    assert ncnn_pair_of(engine.load(param)).param_path == param
    assert ncnn_pair_of(engine.load(named)).param_path == param
    with pytest.raises(SweepError, match="has no such pair beside it"):
        ncnn_pair_of(engine.load(alone))


FAKE_TOOL = """#!/bin/sh
[ "$6" = "method=kl" ] && [ "$5" = "shape=[12,12,3]" ] && [ "$8" = "type=1" ] || exit 3
[ "$(wc -l < "$3")" = 8 ] && [ -f "$(head -1 "$3")" ] || exit 4
printf 'wide_param_0 1 1 1 1 1 1 \\nwide 63.500000 \\n' > "$4"
"""


class TestNcnn2table:
    @pytest.fixture
    def tool(self, tmp_path, monkeypatch):
        def make(text):
            path = tmp_path / "bin" / "ncnn2table"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
            monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")

        return make

    def test_its_thresholds(self, graph, tool):
        tool(FAKE_TOOL)
        assert run_ncnn2table(graph, inputs_of(IMAGES)(), "kl") == {"wide": 2.0}
        assert run_ncnn2table(graph, inputs_of(IMAGES)(), "minmax") is None

    def test_without_it(self, graph, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        assert run_ncnn2table(graph, inputs_of(IMAGES)(), "kl") is None

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("#!/bin/sh\nexit 3\n", "failed with status 3"),
            ("#!/bin/sh\n", "wrote no table"),
            ('#!/bin/sh\necho "a 1 2" > "$4"\n', "layer a needs"),
        ],
    )
    def test_its_failures(self, graph, tool, text, reason):
        tool(text)
        with pytest.raises(EngineError, match=reason):
            run_ncnn2table(graph, inputs_of(IMAGES)(), "kl")
