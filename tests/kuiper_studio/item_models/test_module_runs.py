"""Which operators are bracketed as one module."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kuiper_studio.item_models.module_runs import ModuleRun, module_path, module_runs


def operators(*names):
    """Operators by name, or by ``type:name``."""
    parts = [name.rpartition(":") for name in names]
    return [SimpleNamespace(type=kind or "nn.ReLU", name=name) for kind, _, name in parts]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        pytest.param("layer1.0.relu", ("layer1", "0"), id="path"),
        pytest.param("fc", (), id="top-level"),
        pytest.param("convbn2d_3", (), id="fused"),
        pytest.param("torch.cat:torch.cat_0", (), id="function"),
        pytest.param("Tensor.reshape:Tensor.view_332", (), id="made-another"),
        pytest.param("pnnx_fold_a.b.1", (), id="folded"),
    ],
)
def test_path(name, path):
    assert module_path(operators(name)[0]) == path


def test_gap_within_a_module_is_filled_and_between_modules_is_not():
    names = (
        "in",
        "a.0.relu",
        "convbn2d_0",
        "a.1.relu",
        "pnnx_expr_0",
        "b.relu",
        "b.conv",
        "fc",
    )
    assert module_runs(operators(*names)) == (ModuleRun("a", 1, 3), ModuleRun("b", 5, 6))


def test_module_that_comes_back_has_two_runs():
    found = module_runs(operators("a.x", "b.x", "a.y", "c.x"))
    assert [(run.name, run.first) for run in found] == [("a", 0), ("b", 1), ("a", 2), ("c", 3)]


def test_module_around_nearly_everything_is_opened():
    names = [f"model.{block}.conv" for block in (0, 0, 1, 1, 2, 2)]
    assert [run.name for run in module_runs(operators(*names, "head.fc"))] == [
        "model.0",
        "model.1",
        "model.2",
        "head",
    ]


def test_large_module_inside_is_opened_too():
    names = ["m.stem.conv", *(f"m.body.{block}.conv" for block in range(4)), "m.head.fc"]
    assert [run.name for run in module_runs(operators(*names))] == [
        "m.stem",
        "m.body.0",
        "m.body.1",
        "m.body.2",
        "m.body.3",
        "m.head",
    ]


def test_module_that_cannot_be_opened_stays():
    assert module_runs(operators("m.a", "m.b")) == (ModuleRun("m", 0, 1),)


def test_names_without_modules():
    assert module_runs(operators("in", "conv", "out")) == ()
    assert module_runs(()) == ()
