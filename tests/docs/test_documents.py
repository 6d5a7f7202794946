"""The README and the manual: short, connected, and true about the command line."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path
from urllib.parse import unquote

import pytest

from kuiper_studio.cli.arguments import PARSERS, window_parser

ROOT = Path(__file__).resolve().parents[2]
MANUAL = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *MANUAL, ROOT / "samples" / "README.md"]


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(text: str) -> set[str]:
    """What a heading is linked by: its words in lower case, joined by hyphens."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def links(path: Path) -> list[str]:
    found = re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text(encoding="utf-8")))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for link in links(path):
        file, _, anchor = link.partition("#")
        target = path.parent / unquote(file) if file else path
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


def test_the_manual_stays_inside_its_folder():
    """Its site has nothing else of the project."""
    outside = [link for path in MANUAL for link in links(path) if link.startswith("..")]
    assert outside == []


def test_every_chapter_is_in_the_contents():
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"- ([\w-]+\.md)", contents)) == {path.name for path in MANUAL}
    listed = {link for link in links(ROOT / "docs" / "index.md") if link.endswith(".md")}
    assert listed == {path.name for path in MANUAL} - {"index.md"}


def test_pictures_are_few_and_all_used():
    pictures = set((ROOT / "docs" / "pictures").iterdir())
    used = {
        (path.parent / link).resolve()
        for path in [*MANUAL, ROOT / "README.md"]
        for link in links(path)
        if link.endswith((".png", ".svg"))
    }
    assert used == pictures
    assert sum(path.stat().st_size for path in pictures) < 1_500_000


def test_the_reference_is_what_argparse_knows():
    script = runpy.run_path(str(ROOT / "docs" / "scripts" / "make_command_line.py"))
    written = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert written == script["reference"](), "make docs writes it anew"


@pytest.mark.parametrize("name", ["kuiper-studio", *PARSERS])
def test_the_reference_names_every_option(name):
    written = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    section = written.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    parser = PARSERS[name]() if name in PARSERS else window_parser()
    named = set(re.findall(r"^\| `[^`]*?(--[a-z0-9-]+)", section, re.MULTILINE))
    shown = set(re.findall(r"--[a-z0-9-]+", parser.format_usage())) | {"--help"}
    assert named == shown


@pytest.mark.parametrize("path", [ROOT / "README.md", *MANUAL], ids=lambda path: path.name)
def test_options_that_are_named_exist(path):
    known = {
        option
        for parser in [window_parser(), *(make() for make in PARSERS.values())]
        for action in parser._actions
        for option in action.option_strings
    } | {"--no-deps"}  # of pip
    assert (
        set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", path.read_text(encoding="utf-8")))
        <= known
    )


def test_examples_of_commands_can_be_read():
    examples = 0
    for path in MANUAL:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"^kuiper-studio (.*)$", text, re.MULTILINE):
            words = shlex.split(line)
            parser = PARSERS[words[0]]() if words[0] in PARSERS else window_parser()
            parser.parse_args(words[1:] if words[0] in PARSERS else words)
            examples += 1
    assert examples >= 4


@pytest.mark.parametrize("path", ["README.md", "docs/python.md"])
def test_python_examples_run(path, monkeypatch):
    text = (ROOT / path).read_text(encoding="utf-8")
    example = text.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(example, names)
    assert names["array"].shape == (1, 16, 32, 32)
    assert names["graph"].operator("convbn2d_0").params["kernel_size"] == (3, 3)
