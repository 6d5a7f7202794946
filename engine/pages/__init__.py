"""Parts of pages of HTML that need no other file and no script."""

from __future__ import annotations

import base64
import io
import platform
import shlex
from html import escape
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any, Final

from engine.atomic import format_os_error, write_file
from engine.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from importlib.resources.abc import Traversable
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["conditions", "embed_picture", "page_lines", "versions", "write_page"]

# The page loads and runs nothing, whatever names a model contains.
_POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_LIBRARIES: Final = ("numpy", "onnxruntime", "ncnn")


def page_lines(title: str, style: Traversable, body: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a page, light or dark as the browser is.

    Parameters
    ----------
    title : str
    style : file of CSS
        In addition to the common one.
    body : iterable of str
    """
    common = resources.files("engine.pages").joinpath("page.css")
    styles = "".join([each.read_text(encoding="utf-8") for each in (common, style)])
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>{escape(title)}</title>"
    yield f"<style>{styles}</style></head><body><main>"
    yield from body
    yield "</main></body></html>"


def write_page(path: Path, lines: Iterable[str]) -> None:
    """Write a page; an existing file is replaced.

    Raises
    ------
    ExportError
        If it cannot be written.
    """
    text = "\n".join(lines)
    try:
        write_file(path, text.encode("utf-8", "replace"))
    except OSError as exc:
        raise ExportError(f"cannot write {path}: {format_os_error(exc)}") from exc


def embed_picture(picture: npt.NDArray[Any]) -> str:
    """Return a picture as a ``data:`` address.

    Parameters
    ----------
    picture : ndarray of uint8
        As Pillow takes it.
    """
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def conditions(facts: Iterable[tuple[str, str]], command: Sequence[str]) -> Iterator[str]:
    """Yield a list of facts, and a command line if there is one."""
    yield "<dl>"
    for name, text in facts:
        yield f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"
    yield "</dl>"
    if command:
        yield f"<pre>{escape(shlex.join(command))}</pre>"


def versions() -> Iterator[str]:
    """Yield the versions of Python, of this program and of the libraries that compute."""
    yield f"Python {platform.python_version()}"
    for name in ("kuiper-studio", *_LIBRARIES):
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
