"""Write the reference of the command line from its argparse parsers.

Run by ``make docs``; a test checks that the file is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kuiper_studio.cli.arguments import PARSERS, window_parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

REFERENCE: Final = Path(__file__).resolve().parents[1] / "command-line.md"

HEAD: Final = """\
# Command line

`kuiper-studio` without a command opens the window. Commands need no display. `MODEL` is the
`.param` file, the `.bin` file or their folder, or a `.pt` or `.onnx` that pnnx converts.

Results go to standard output, errors as one sentence to standard error. Exit status 0 means
done, 1 that `check` or `compare` found differences or that `precision` did not reach the error
of `--keep`, 2 an error, and 128 and more that the user or the system ended the command.

Long work shows a bar with rate and time left, on a terminal only.

A command works in a process of its own. When a library ends that process, by a segmentation
fault for example, the command names the operator and the library, and runs once more without
that library in that operator. It remembers this for the model until the library has another
version.
"""


def describe(action: argparse.Action) -> str:
    """Write how an argument is given: ``--size ROWSxCOLUMNS``."""
    value = action.metavar or ""
    if action.choices is not None:
        value = f"{{{','.join(map(str, action.choices))}}}"
    several = {"+": f"{value} ...", "*": f"[{value} ...]", "?": f"[{value}]"}
    value = several.get(str(action.nargs), str(value))
    return " ".join(filter(None, [", ".join(action.option_strings), value]))


def list_rows(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Give a row of the table for each argument."""
    for action in parser._actions:
        words = (action.help or "") % {**vars(action), "prog": parser.prog}
        yield f"| `{describe(action)}` | {words} |"


def describe_command(title: str, parser: argparse.ArgumentParser) -> str:
    """Write the section of a command."""
    words = [(parser.description or "").strip()]
    if parser.epilog and title != "kuiper-studio":  # that one lists the commands
        words.append(parser.epilog)
    table = ["| argument | meaning |", "|---|---|", *list_rows(parser)]
    return "\n\n".join([f"## {title}", *words, "\n".join(table)])


def reference() -> str:
    """Write the whole page."""
    sections = [describe_command("kuiper-studio", window_parser())]
    sections += [describe_command(name, make()) for name, make in PARSERS.items()]
    return "\n\n".join([HEAD.rstrip(), *sections]) + "\n"


if __name__ == "__main__":
    REFERENCE.write_text(reference(), encoding="utf-8")
    sys.exit(0)
