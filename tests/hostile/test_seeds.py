"""A few of the models that `hostile` draws; ``make hostile`` runs many."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

import engine
from engine.errors import ModelFileError
from hostile.__main__ import FILE_WORKER, KINDS, watch
from hostile.models import model_of, write_model

SEEDS = 30


@pytest.fixture(autouse=True)
def _found_by_workers(monkeypatch):
    tests = str(Path(__file__).parent.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([tests, *filter(None, sys.path)]))


def test_none_does_harm():
    pytest.importorskip("onnxruntime")
    pytest.importorskip("ncnn")
    findings, outcomes = watch(0, SEEDS - 1, seconds=120)
    assert not findings
    assert sum(outcomes.values()) == 4 * SEEDS
    assert outcomes["ran"] > SEEDS // 2  # or all would be refused before they can do harm


def test_no_damaged_file_does_harm():
    pytest.importorskip("ncnn")
    findings, outcomes = watch(0, 4, KINDS, 120, FILE_WORKER)
    assert not findings
    assert sum(outcomes.values()) == 5 * len(KINDS)
    assert outcomes["ran"]


def test_a_seed_is_a_model(tmp_path):
    assert model_of(3).lines == model_of(3).lines
    assert len({tuple(model_of(seed).lines) for seed in range(50)}) == 50


PRETENDING = """
import os, sys, time
first, last, backends = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")
for seed in range(first, last + 1):
    for backend in backends:
        print("begin", seed, backend, flush=True)
        if (seed, backend) == (2, "ncnn"):
            {deed}
        print("end", seed, backend, "0.10 ran", flush=True)
"""


@pytest.mark.parametrize(
    ("deed", "what"),
    [
        ("os.abort()", "crashed: exit status -6"),
        ("time.sleep(600)", "endless: more than 5 s"),
        ('print("end 2 ncnn 0.10 memory 3000 MiB: ran", flush=True); continue', "memory 3000"),
        ('print("end 2 ncnn 0.10 unforeseen KeyError: x", flush=True); continue', "unforeseen"),
    ],
)
def test_harm_is_noticed(deed, what):
    """A worker pretends to do harm; another worker runs the cases after it."""
    findings, outcomes = watch(
        1, 3, ("numpy", "ncnn", "auto"), 5, ("-c", PRETENDING.format(deed=deed))
    )
    (found,) = findings
    assert (found.seed, found.backend) == (2, "ncnn")
    assert found.what.startswith(what)
    assert outcomes["ran"] == 8


def test_the_files_are_read(tmp_path):
    """Most files open, or nothing would run; some are refused when they are opened."""
    opened = 0
    for seed in range(20):
        with contextlib.suppress(ModelFileError):
            opened += len(engine.load(write_model(model_of(seed), tmp_path)).operators) > 1
    assert opened > 10
