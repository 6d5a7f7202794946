"""Parses numpydoc docstrings."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Docstring", "Field", "read_docstring"]

_SECTION: Final = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_NAME: Final = re.compile(r"\*{0,2}\w[\w.]*")


@dataclass(frozen=True, slots=True)
class Field:
    """An argument or a result in a docstring.

    Attributes
    ----------
    form : str
        The text after the colon: ``int or tuple of int``, ``ndarray of shape (N, C)``.
    text : str
        The paragraph under it; may be empty.
    """

    form: str
    text: str


@dataclass(frozen=True, slots=True)
class Docstring:
    """Parts of a docstring, each line of a paragraph joined to one.

    Attributes
    ----------
    summary : str
        The first paragraph.
    details : tuple of str
        The paragraphs up to the first section.
    parameters : mapping of str to Field
        By name, in order; names that share a line share their field.
    returns : tuple of Field
    """

    summary: str = ""
    details: tuple[str, ...] = ()
    parameters: Mapping[str, Field] = field(default_factory=dict)
    returns: tuple[Field, ...] = ()


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring.

    Parameters
    ----------
    text : str or None
        The docstring as in the code, indented.
    """
    parts = _SECTION.split(inspect.cleandoc(text or ""))
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    summary, *details = _paragraphs(parts[0]) or [""]
    parameters = {
        name: entry
        for head, entry in _fields(sections.get("Parameters", ""))
        for name in _NAME.findall(head)
    }
    # A result has a type and seldom a name, so its head is the type.
    returns = tuple(
        Field(f"{head} : {entry.form}" if entry.form else head, entry.text)
        for head, entry in _fields(sections.get("Returns", ""))
    )
    return Docstring(summary, tuple(details), parameters, returns)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def _fields(section: str) -> Iterator[tuple[str, Field]]:
    """Yield heads (names, or a result's type) with their texts."""
    for block in re.split(r"\n(?=\S)", section.strip("\n")):
        head, _, body = block.partition("\n")
        if head.strip():
            names, _, form = head.partition(" : ")
            yield names.strip(), Field(form.strip(), " ".join(body.split()))
