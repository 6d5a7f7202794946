"""``kuiper-studio precision``."""

from __future__ import annotations

import json


def precision(run, digits, *options):
    return run("precision", digits, "--input", digits / "digit_3.png", *options)


def test_table_by_harm(run, digits):
    ended = precision(run, digits)
    assert (ended.status, ended.err) == (0, "")
    head, *rows, empty, summary = ended.out.splitlines()
    assert head.split()[:5] == ["#", "type", "name", "headroom", "underflow"]
    assert "F.softmax" in rows[0]
    assert len(rows) == 23
    assert empty == ""
    assert summary.startswith("all in float16: the model's output is off by ")


def test_keep(run, digits):
    ended = precision(run, digits, "--format", "bfloat16", "--keep", "1e-6")
    told = ended.out.split("\n\n")[1].splitlines()
    assert told[1].startswith("keep F.softmax_1: off by ")
    assert "  F.softmax_1 31=4" in told
    assert any(line.startswith("sums in other orders, as in another library") for line in told)
    assert ended.status == (0 if any(line.endswith(", within 1e−6") for line in told) else 1)


def test_json(run, digits):
    ended = precision(run, digits, "--format", "int8", "--keep", "0", "--json")
    facts = json.loads(ended.out)
    assert facts["format"] == "int8"
    assert len(facts["operators"]) == 23
    harms = [each["at_output"]["relative"] for each in facts["operators"]]
    assert harms == sorted(harms, reverse=True)
    assert facts["operators"][0]["outputs"]["headroom"] is None
    keep = facts["keep"]
    assert (ended.status, keep["reached"]) in {(0, True), (1, False)}
    assert keep["steps"][-1]["output"] == keep["output"]
    low, high = keep["spread"]
    assert low <= keep["output"]["relative"] == high
    assert all(line.startswith("#") for line in keep["ncnn"])


def test_wrong_arguments(run, digits):
    told = precision(run, digits, "--keep", "-1").sentence
    assert told.startswith("argument --keep: the tolerance -1 is negative")
