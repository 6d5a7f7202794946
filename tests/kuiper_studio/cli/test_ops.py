"""``ops``: which operator types have a layer, and what they compute."""

from __future__ import annotations

import json

import pytest

from engine.layers import registered_types, unload_layers


@pytest.fixture(autouse=True)
def unloaded():
    yield
    unload_layers()


def test_all_types_with_a_sentence(run):
    lines = run("ops").lines
    assert [line.split()[0] for line in lines] == list(registered_types())
    (line,) = [line for line in lines if line.startswith("nn.MaxPool2d ")]
    assert line.split("  ")[-1].strip() == "Largest value of each window."
    assert not any("`" in line for line in lines)


def test_types_that_fit_a_pattern(run):
    lines = run("ops", "nn.BatchNorm*", "nn.Line?r").lines
    assert [line.split()[0] for line in lines] == [
        "nn.BatchNorm1d", "nn.BatchNorm2d", "nn.BatchNorm3d", "nn.Linear",
    ]  # fmt: skip


def test_one_type_in_full(run):
    lines = run("ops", "nn.MaxPool2d").lines
    assert lines[:2] == ["nn.MaxPool2d — torch.nn.MaxPool2d", "Largest value of each window."]
    text = "\n".join(lines)
    stride = "\n  stride (parameter): int or tuple of int, optional. kernel_size by default.\n"
    assert stride in text
    assert "\n  ceil_mode (parameter, default False): bool. Whether a last window may" in text
    assert "also for: F.max_pool1d" in text
    assert lines[-1] == "https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html"
    assert all(len(line) <= 88 for line in lines)


def test_results_are_documented(run):
    text = " ".join(run("ops", "F.group_norm").lines)
    assert (
        "returns: ndarray of shape (N, C, ...): (x - mean) / sqrt(var + eps) * weight + bias."
        in text
    )


def test_json_for_programs(run):
    (facts,) = json.loads(run("ops", "F.relu", "--json").out)
    assert facts["type"] == "F.relu"
    assert facts["summary"] == "max(x, 0)."
    assert facts["reference"] == "torch.nn.functional.relu"
    assert {"Tensor.relu", "nn.ReLU", "torch.relu"} <= set(facts["same"])
    assert facts["file"] is None
    (argument,) = facts["arguments"]
    assert (argument["name"], argument["kind"]) == ("input", "operand")


def test_user_layers_are_listed(run, samples):
    file = samples / "layers" / "my_layers.py"
    lines = run("ops", "contrast_net.Squash", "--layers", file).lines
    assert lines[0] == "contrast_net.Squash"
    assert lines[1] == "Squash to between -1 and 1: s * x / (1 + abs(s * x))."
    assert f"layer from: {file.resolve()}" in lines
    assert "  steepness (parameter, default 2.0): float. The slope at 0;" in "\n".join(lines)
