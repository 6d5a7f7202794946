"""What the README says about the command line is true."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from kuiper_studio.cli.arguments import (
    check_parser,
    dump_parser,
    info_parser,
    ops_parser,
    render_parser,
    run_parser,
    window_parser,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def section(samples: Path) -> str:
    text = (samples.parent / "README.md").read_text(encoding="utf-8")
    return text.partition("## Command line")[2].partition("\n## ")[0]


def commands(section: str, word: str) -> list[str]:
    """Lines of the first block that begin with a command, without their explanations."""
    block = section.split("```")[1]
    found = re.findall(rf"^kuiper-studio ({word} .*?)(?:   .*)?$", block, re.MULTILINE)
    assert found, f"the README does not mention {word}"
    return found


@pytest.mark.parametrize("word", ["info", "run", "dump", "check", "render", "ops"])
def test_commands_do_what_they_say(run, section, digits, tmp_path, monkeypatch, qapp, word):
    monkeypatch.chdir(tmp_path)
    for line in commands(section, word):
        for optional in (r"", r"\1"):
            spelled = re.sub(r"\[(.*?)\]", optional, line)
            spelled = spelled.replace("SOURCE ...", str(digits / "digit_3.png"))
            spelled = spelled.replace("MODEL", str(digits / "digits.pnnx.param"))
            spelled = spelled.replace("DIR", "dump").replace("graph.svg|png", "graph.svg")
            spelled = spelled.replace("TYPE ...", "'nn.Conv*'")
            ended = run(*shlex.split(spelled), *(["--overwrite"] if word == "dump" else []))
            assert (ended.status, ended.err) == (0, ""), spelled
            assert ended.out
    made = {
        "info": [],
        "run": ["out.npz"],
        "dump": ["dump"],
        "check": [],
        "render": ["graph.svg"],
        "ops": [],
    }[word]
    assert all((tmp_path / name).exists() for name in made)


def test_options_that_are_named_exist(section):
    parsers = [
        window_parser(),
        info_parser(),
        run_parser(),
        dump_parser(),
        check_parser(),
        render_parser(),
        ops_parser(),
    ]
    known = {
        option for p in parsers for action in p._actions for option in action.option_strings
    }
    named = set(re.findall(r"--[a-z0-9-]+", section))
    assert named
    assert named <= known


def test_examples_of_options_can_be_read(section):
    examples = [" ".join(text.split()) for text in re.findall(r"`(--[^`]+)`", section)]
    assert any("--mean" in example for example in examples)
    for example in examples:
        words = [word.partition("|")[0] for word in shlex.split(example)]
        parser = run_parser() if "--size" in words or "--labels" in words else dump_parser()
        needed = [] if parser.prog.endswith("run") else ["--output", "d"]
        if words == ["--labels"]:
            continue
        parser.parse_args(["model", *needed, *words])


def test_the_python_example_runs(samples, monkeypatch):
    text = (samples.parent / "README.md").read_text(encoding="utf-8")
    example = text.partition("## From Python")[2].split("```")[1].removeprefix("python")
    monkeypatch.chdir(samples.parent)
    names: dict[str, object] = {}
    exec(example, names)
    assert names["array"].shape == (1, 16, 32, 32)
    assert "(3, 3)" in example
    assert names["graph"].operator("convbn2d_0").params["kernel_size"] == (3, 3)
