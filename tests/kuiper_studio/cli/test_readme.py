"""What the README says about the command line is true."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

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
            spelled = spelled.replace("DIR", "dump").replace("graph.svg|png|pdf", "graph.svg")
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
