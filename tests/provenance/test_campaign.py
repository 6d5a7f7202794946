"""Elements of the samples' operators; ``python -m provenance FOLDER`` tries many models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.layers.linear import Linear
from engine.provenance import table
from provenance.campaign import Findings, try_operator

SAMPLES = Path(__file__).parents[2] / "samples"


def run(name):
    graph = engine.load(next((SAMPLES / name).glob("*.pnnx.param")))
    session = engine.Session(graph, "numpy")
    rng = np.random.default_rng(0)
    session.feed([
        rng.normal(size=each.shape).astype(np.float32) for each in graph.input_operands
    ])  # fmt: skip
    session.run()
    return session


def findings_of(session):
    findings, rng = Findings(), np.random.default_rng(1)
    for operator in session.graph.operators:
        try_operator("sample", session, operator, findings, rng, elements=2)
    return findings


@pytest.mark.parametrize("name", ["gaze", "linear"])
def test_nothing_is_wrong(name):
    findings = findings_of(run(name))
    assert findings.wrong == []
    assert findings.unexplained.total() == 0
    assert findings.explained >= findings.operators > 0
    assert findings.slopes > 0


def test_a_wrong_rule_is_found(monkeypatch):
    session = run("linear")
    right = table.find_explanation(session.graph.operator("linear").layer)

    def wrong(call, index):
        found = right(call, index)
        return replace(found, total=found.total + 1)

    monkeypatch.setitem(table._EXPLANATIONS, Linear, wrong)
    assert any("products make" in text for text in findings_of(session).wrong)
