"""Distributions and labels of a comparison over a data set, against hand-computed ones."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from datasets_support import DIGITS
from ncnn_files import f32, tagged, write_pair

import engine
from engine.datasets import SweepOptions, open_sweep, sweep
from engine.datasets.against import dump_spec, model_spec, prepare_against, write_against
from engine.datasets.against.distributions import (
    WORST,
    Distributions,
    merge_distributions,
    quantile,
)
from engine.datasets.against.labels import read_class_labels
from engine.datasets.page import write_summary_page
from engine.errors import SweepError

RNG = np.random.default_rng(3)


def numbers(relative, nmse=1e-6, max_abs=0.5, cosine=0.9):
    return relative, nmse, max_abs, cosine


class TestDistributions:
    def test_by_hand(self):
        found = Distributions(2)
        found.add(0, 7, numbers(0.5, cosine=0.25))
        found.add(0, 3, numbers(0.0, nmse=0.0, cosine=math.nan))
        found.add(0, 9, numbers(math.inf, max_abs=math.inf))
        found.skip(1)
        arrays = found.finish()
        assert arrays["compared"].tolist() == [3, 0]
        assert arrays["not_compared"].tolist() == [0, 1]
        assert arrays["infinite"].tolist() == [1, 0]
        np.testing.assert_allclose(arrays["sums"][0], [0.5, 2e-6, 1.0, 1.15])
        assert arrays["largest"][0].tolist() == [math.inf, 1e-6, math.inf, 0.9]
        assert arrays["least"][0, 3] == 0.25
        assert arrays["worst_inputs"][0, :4].tolist() == [9, 7, 3, -1]

    def test_quantiles_are_near_sorted_ones(self):
        values = np.sort(10.0 ** RNG.uniform(-9, 0, 500))
        found = Distributions(1)
        for index, value in enumerate(values):
            found.add(0, index, numbers(value))
        counts = found.finish()["histogram"][0, 0]
        for share in (0.01, 0.5, 0.9, 0.99, 1.0):
            expected = values[math.ceil(share * 500) - 1]
            assert quantile(counts, share) == pytest.approx(expected, rel=0.0221)

    def test_quantiles_beyond_the_bins(self):
        found = Distributions(1)
        for index, value in enumerate([0.0, 1e-30, math.inf]):
            found.add(0, index, numbers(value))
        counts = found.finish()["histogram"][0, 0]
        assert (quantile(counts, 0.5), quantile(counts, 1.0)) == (0.0, math.inf)
        assert math.isnan(quantile(np.zeros_like(counts), 0.5))

    def test_merged_parts_equal_the_whole(self):
        values = np.round(RNG.uniform(0, 1, 100), 1)  # with equal ones
        whole, parts = Distributions(1), [Distributions(1) for _ in range(4)]
        for index, value in enumerate(values):
            whole.add(0, index, numbers(value))
            parts[index // 25].add(0, index, numbers(value))
        one, two, three, four = (part.finish() for part in parts)
        merged = merge_distributions(
            merge_distributions(one, two), merge_distributions(three, four)
        )
        for name, array in whole.finish().items():
            if name == "sums":
                np.testing.assert_allclose(merged[name], array)
            else:
                assert np.array_equal(merged[name], array), name
        order = sorted(range(100), key=lambda index: (-values[index], index))
        assert merged["worst_inputs"][0].tolist() == order[:WORST]


LINES = [
    "Input in0 0 1 in0",
    "InnerProduct one 1 1 in0 a 0=4 1=1 2=12",
    "ReLU act 1 1 a b",
    "InnerProduct two 1 1 b out0 0=3 1=1 2=12",
]
WEIGHTS = [RNG.standard_normal(count).astype(np.float32) for count in (12, 4, 12, 3)]
WEIGHTS[1] += 5  # so that no result of the activation is all zeros
INPUTS = RNG.standard_normal((20, 3)).astype(np.float32)
CLASSES = RNG.integers(0, 3, 20)


def write_model(folder, weights, name="m.ncnn"):
    one, b1, two, b2 = weights
    return write_pair(folder, LINES, tagged(one) + f32(b1) + tagged(two) + f32(b2), name)


def by_hand(weights):
    """The outputs of each operator for all inputs, in float64."""
    one, b1, two, b2 = (x.astype(np.float64) for x in weights)
    a = INPUTS @ one.reshape(4, 3).T + b1
    b = np.maximum(a, 0)
    return {"a": a, "b": b, "out0": b @ two.reshape(3, 4).T + b2}


class TestSweeps:
    @pytest.fixture
    def models(self, tmp_path):
        changed = [x.copy() for x in WEIGHTS]
        changed[2] += np.float32(0.3)
        np.save(tmp_path / "set.npy", INPUTS)
        (tmp_path / "labels.csv").write_text(
            "".join(f"{index},{label}\n" for index, label in enumerate(CLASSES))
        )
        ours = write_model(tmp_path, WEIGHTS)
        return ours, write_model(tmp_path, changed, "other.ncnn"), by_hand(changed)

    def run(self, model, other, tmp_path, options, labels=None):
        graph = engine.load(model)
        study = prepare_against(graph, tmp_path / "set.npy", other, options, labels)
        options = replace(options, studies=(study,), statistics=False, shard=8)
        found = sweep(graph, tmp_path / "set.npy", tmp_path / "out", options, workers=0)
        return write_against(found, study)

    def check(self, facts, theirs):
        ours = by_hand(WEIGHTS)
        rows = {row["operand"]: row for row in facts["rows"]}
        assert list(rows) == ["a", "b", "out0"]
        for name in rows:
            largest = np.abs(theirs[name]).max(1)
            relative = np.abs(ours[name] - theirs[name]).max(1) / largest
            assert rows[name]["compared"] == 20
            assert rows[name]["relative"]["mean"] == pytest.approx(relative.mean(), abs=1e-5)
            assert rows[name]["relative"]["max"] == pytest.approx(relative.max(), abs=1e-5)
        order = np.argsort(-relative, kind="stable")[:WORST]
        assert [each["input"] for each in facts["worst"]] == order.tolist()
        assert facts["worst"][0]["name"].endswith(f"set.npy[{order[0]}]")
        tops = ours["out0"].argmax(1), theirs["out0"].argmax(1)
        differing = np.flatnonzero(tops[0] != tops[1])
        assert facts["top1"]["same"] == 20 - len(differing)
        assert [each["input"] for each in facts["top1"]["differing"]] == differing.tolist()
        return tops

    def test_another_model(self, models, tmp_path):
        model, other, theirs = models
        options = SweepOptions(backend="numpy")
        spec = model_spec(other, "numpy", "exact", 0, None)
        facts = self.run(model, spec, tmp_path, options, tmp_path / "labels.csv")
        tops = self.check(facts, theirs)
        assert facts["accuracy"] == {
            "labelled": 20,
            "right": int((tops[0] == CLASSES).sum()),
            "right_reference": int((tops[1] == CLASSES).sum()),
        }
        assert json.loads((tmp_path / "out" / "against.json").read_text()) == facts
        page = write_summary_page(open_sweep(tmp_path / "out")).read_text()
        assert "<h2>Worst inputs against other.ncnn.param</h2>" in page
        assert f"Same top-1 in {facts['top1']['same']} of 20 inputs." in page
        assert f'title="{facts["worst"][0]["name"]}"' in page

    def test_the_dump_of_another_sweep(self, models, tmp_path):
        pytest.importorskip("zarr")
        model, other, theirs = models
        options = SweepOptions(backend="numpy")
        dumping = SweepOptions(backend="numpy", dump=True, statistics=False)
        sweep(other, tmp_path / "set.npy", tmp_path / "dumped", dumping, workers=0)
        spec = dump_spec(tmp_path / "dumped")
        facts = self.run(model, spec, tmp_path, options)
        self.check(facts, theirs)
        assert (facts["reference"], facts["accuracy"]) == ("dumped", None)

    def test_a_dump_in_the_folder_of_the_results_is_left_alone(self, models, tmp_path):
        pytest.importorskip("zarr")
        model, _, _ = models
        out, options = tmp_path / "out", SweepOptions(backend="numpy", dump=True)
        sweep(model, tmp_path / "set.npy", out, options, workers=0)
        graph, spec = engine.load(model), dump_spec(out)
        study = prepare_against(graph, tmp_path / "set.npy", spec, options)
        options = replace(options, studies=(study,))
        for how in ("resume", "overwrite"):
            with pytest.raises(SweepError, match="is in the folder of the results"):
                sweep(graph, tmp_path / "set.npy", out, options, workers=0, **{how: True})
        values = engine.open_reference(f"{out / 'dump.zarr'}:3").array("a")
        np.testing.assert_allclose(np.ravel(values), by_hand(WEIGHTS)["a"][3], rtol=1e-5)
        assert open_sweep(out).studies == ("statistics",)

    def test_a_shorter_dump(self, models, tmp_path):
        pytest.importorskip("zarr")
        model, other, _ = models
        dumping = SweepOptions(backend="numpy", dump=True, statistics=False, limit=15)
        sweep(other, tmp_path / "set.npy", tmp_path / "dumped", dumping, workers=0)
        facts = self.run(
            model, dump_spec(tmp_path / "dumped"), tmp_path, SweepOptions(backend="numpy")
        )
        assert (facts["inputs"], facts["failed"]) == (15, 5)

    def test_a_dump_without_the_output(self, models, tmp_path):
        pytest.importorskip("zarr")
        model, _, _ = models
        dumping = SweepOptions(
            backend="numpy", dump=True, statistics=False, operators=("in0", "one", "act")
        )
        sweep(model, tmp_path / "set.npy", tmp_path / "dumped", dumping, workers=0)
        facts = self.run(
            model, dump_spec(tmp_path / "dumped"), tmp_path, SweepOptions(backend="numpy")
        )
        assert facts["top1"] == {"inputs": 0, "same": 0, "differing": []}
        assert facts["worst"] == []  # the same numbers
        page = write_summary_page(open_sweep(tmp_path / "out")).read_text()
        assert "does not have the first output, so no top-1 is compared." in page
        assert "Worst inputs" not in page

    def test_a_model_against_itself(self, tmp_path):
        np.save(tmp_path / "set.npy", RNG.random((9, 1, 32, 32), np.float32))
        spec = model_spec(DIGITS, "auto", "exact", 0, None)
        # Each of two parts opens it anew: its first input too runs with the chosen kernels.
        facts = self.run(DIGITS, spec, tmp_path, SweepOptions(batch=1))
        assert len(facts["rows"]) > 20
        for row in facts["rows"]:
            assert (row["compared"], row["relative"]["max"]) == (9, 0.0), row["operand"]

    def test_no_dump(self, tmp_path):
        pytest.importorskip("zarr")
        with pytest.raises(SweepError, match="is no dump of a data set"):
            dump_spec(tmp_path)

    def test_models_without_anything_in_common(self, models, tmp_path):
        model, _, _ = models
        lines = ["Input in0 0 1 in0", "InnerProduct x 1 1 in0 y 0=7 1=0 2=21"]
        weights = tagged(RNG.standard_normal(21).astype(np.float32))
        other = write_pair(tmp_path, lines, weights, "odd.ncnn")
        spec = model_spec(other, "numpy", "exact", 0, None)
        with pytest.raises(SweepError, match="No tensor of odd"):
            prepare_against(
                engine.load(model), tmp_path / "set.npy", spec, SweepOptions(backend="numpy")
            )


class TestLabels:
    def test_of_a_csv(self, tmp_path):
        path = tmp_path / "labels.csv"
        path.write_text("a.png,3\nsub/b.png, 1\nc,2\n")
        names = ["/data/a.png", "/data/sub/b.png", "/data/other/b.png", "/data/c.npy"]
        assert read_class_labels(path, names).tolist() == [3, 1, -1, 2]

    def test_of_an_array(self, tmp_path):
        path = tmp_path / "labels.csv"
        path.write_text("0,5\n2,6\n")
        names = [f"/data/x.npy[{index}]" for index in range(3)]
        assert read_class_labels(path, names).tolist() == [5, -1, 6]

    def test_of_folders(self, tmp_path):
        names = [str(tmp_path / name) for name in ("dog/1.png", "cat/x/2.png", "3.png")]
        assert read_class_labels(tmp_path, names).tolist() == [1, 0, -1]

    def test_names_of_classes_are_numbered_in_order(self, tmp_path):
        path = tmp_path / "labels.csv"
        path.write_text("a,ship\nb,cat\nc,ship\n")
        assert read_class_labels(path, ["c.png", "b.png"]).tolist() == [1, 0]

    def test_classes_without_an_input_count(self, tmp_path):
        path = tmp_path / "labels.csv"
        path.write_text("a,cat\nb,dog\nc,ship\n")
        assert read_class_labels(path, ["c.png", "b.png"]).tolist() == [2, 1]
        for name in ("ant", "bee", "cow", ".git"):
            (tmp_path / "set" / name).mkdir(parents=True)
        names = [str(tmp_path / "set" / "cow" / "1.png")]
        assert read_class_labels(tmp_path / "set", names).tolist() == [2]

    @pytest.mark.parametrize(
        ("text", "reason"),
        [("a\n", "line 1: expected a name and a label"), ("b,1\n", "no input has a label")],
    )
    def test_damaged_ones(self, tmp_path, text, reason):
        path = tmp_path / "labels.csv"
        path.write_text(text)
        with pytest.raises(SweepError, match=reason):
            read_class_labels(path, ["a.png"])

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(SweepError, match="no such file"):
            read_class_labels(tmp_path / "none.csv", ["a"])
