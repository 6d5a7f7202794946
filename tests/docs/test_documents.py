"""The README and the manual: short, connected, and true about the command line."""

from __future__ import annotations

import re
import runpy
import shlex
from importlib import import_module
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import pytest

import engine
from kuiper_studio.cli.arguments import PARSERS, window_parser

ROOT = Path(__file__).resolve().parents[2]
MANUAL = sorted((ROOT / "docs").glob("*.md"))
FOLDERS = ("engine", "kuiper_studio", "tests", "docs", "resources", "samples", ".ci")
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
    } | {"--no-deps", "--nthreads", "--nworkers"}  # of pip and Dask
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


def test_commands_of_the_readme_name_all_that_they_need():
    """Without what is in brackets, and with the first of several words to choose from."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = [
        shlex.split(re.sub(r"\[.*?\]|\.\.\.|\|\S+", "", re.split("  +", line)[0]))
        for line in re.findall(r"^kuiper-studio (\w+ .*)$", text, re.MULTILINE)
    ]
    assert sorted(name for name, *_ in examples) == sorted(PARSERS)
    for name, *words in examples:
        given = vars(PARSERS[name]().parse_args(words))
        if name not in ("convert", "info") and "input" in given:  # these need none
            assert given["input"], name


def names_in(text: str) -> list[str]:
    """The words between backquotes, outside of blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def is_path(name: str) -> bool:
    """Whether a name looks like a path in the project, not like a file of the user."""
    if any(name.startswith(folder + "/") for folder in FOLDERS):
        return bool(re.fullmatch(r"[\w./-]+", name))
    return bool(re.fullmatch(r"[\w./-]*\w\.(py|qss|toml)", name))


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """The text of every file that is made by hand, by its path in the project."""
    found = {}
    for path in (p for folder in FOLDERS for p in (ROOT / folder).rglob("*")):
        if path.suffix in {".py", ".qss", ".md"} and path.is_file():
            text = path.read_text(encoding="utf-8") if path.suffix == ".py" else ""
            found[path.relative_to(ROOT).as_posix()] = text
    return found | {path.name: "" for path in ROOT.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def words(sources) -> set[str]:
    """Every word of the code."""
    return {word for text in sources.values() for word in re.findall(r"\w+", text)}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_exist(path, sources):
    folders = {part.as_posix() for file in sources for part in PurePosixPath(file).parents}
    missing = [
        name
        for name in names_in(path.read_text(encoding="utf-8"))
        if is_path(name)
        and not any(
            f"/{known}".endswith(f"/{name.rstrip('/')}") for known in [*sources, *folders]
        )
        and not (ROOT / name).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_that_are_named_exist(path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    named = re.findall(r"`make ([a-z][\w-]*)", path.read_text(encoding="utf-8"))
    assert set(named) <= targets


@pytest.mark.parametrize(
    "path", [ROOT / "ARCHITECTURE.md", *MANUAL], ids=lambda path: str(path.relative_to(ROOT))
)
def test_classes_and_attributes_that_are_named_exist(path, words):
    """`ClassName`, and each word of a dotted name that begins with a class or with engine."""
    missing = [
        name
        for name in names_in(path.read_text(encoding="utf-8"))
        if re.match(r"(?:[A-Z][a-z]+[A-Z]\w*|engine\.\w+|[A-Z][a-z]+\.\w+)[\w.]*(?:\(|$)", name)
        and not set(re.findall(r"\w+", name.partition("(")[0])) <= words
    ]
    assert missing == []


def test_the_api_reference_lists_every_public_name():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)
    modules = {"engine.errors", "engine.meanings.results"}
    homes = [name.rpartition(".") for name in listed if name not in modules]
    assert all(import_module(name) for name in modules)
    assert all(hasattr(import_module(home), name) for home, _, name in homes)
    assert set(engine.__all__) <= {name.rpartition(".")[2] for name in listed}


@pytest.mark.parametrize("path", ["README.md", "docs/python.md"])
def test_python_examples_run(path, monkeypatch):
    text = (ROOT / path).read_text(encoding="utf-8")
    example = text.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(example, names)
    assert names["array"].shape == (1, 16, 32, 32)
    assert names["graph"].operator("convbn2d_0").params["kernel_size"] == (3, 3)
