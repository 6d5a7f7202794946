"""The page: ranges, dead channels, unusual inputs, and how to repeat the sweep."""

from __future__ import annotations

import contextlib
from datetime import datetime
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.datasets.inputs import InputReader
from engine.datasets.page.figures import draw_channels, draw_histogram, list_channels
from engine.datasets.page.study_sections import study_sections
from engine.datasets.thumbnails import draw_input
from engine.errors import SweepError
from engine.pages import conditions, embed_picture, page_lines, versions, write_page
from engine.text import format_brief, format_count, format_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.datasets.results import OperandSummary, OutlierInput, Sweep

__all__ = ["PAGE", "write_summary_page"]

PAGE: Final = "summary.html"
_MOST_OPERANDS: Final = 600
_MOST_PICTURED: Final = 12  # unusual inputs
_COPYING: Final = "ncnn.Split"  # a layer whose outputs are its input
_MOST_NAMED: Final = 3  # operands of an unusual input
_MOST_FAILED: Final = 100
_LARGE: Final = 224  # pixels of a picture


def write_summary_page(
    found: Sweep, path: str | Path | None = None, command: Sequence[str] = ()
) -> Path:
    """Write the results of a sweep as one HTML page that needs no other file and no script.

    Parameters
    ----------
    found : Sweep
    path : str or Path, optional
        By default ``summary.html`` in the folder of the sweep. An existing file is replaced.
    command : sequence of str, optional
        The command line that repeats the sweep.

    Returns
    -------
    Path

    Raises
    ------
    ExportError
        If it cannot be written.
    SweepError
        If the statistics cannot be read.
    """
    target = found.path / PAGE if path is None else Path(path)
    style = resources.files("engine.datasets.page").joinpath("page.css")
    page = _Page(found, command)
    write_page(target, page_lines(f"{found.model.name} over a data set", style, page.body()))
    return target


class _Page:
    """Makes the lines of the page."""

    def __init__(self, found: Sweep, command: Sequence[str]) -> None:
        self._found, self._command = found, command
        every = found.operands.values()
        self._operands = tuple(each for each in every if each.type != _COPYING)
        self._copies = len(every) - len(self._operands)

    def body(self) -> Iterator[str]:
        yield from self._summary()
        yield from self._ranges()
        yield from self._dead_channels()
        yield from self._unusual()
        yield from self._studies()
        yield from self._failed()
        yield from self._conditions()

    def _summary(self) -> Iterator[str]:
        found, operands = self._found, self._operands
        dead = sum(len(each.dead_channels) for each in operands)
        special = sum(each.nan + each.inf for each in operands)
        failed = found.inputs.failed_count
        facts = [
            format_count(len(operands), "operand") if operands else "no statistics",
            format_count(found.model.operators, "operator"),
            f"tensors in {found.dump.name}" if found.dump is not None else "",
            f"{format_count(dead, 'dead channel')}" if operands else "",
            f"{format_count(special)} NaN or infinite elements" if special else "",
            f"{format_count(failed, 'input')} could not be run" if failed else "",
        ]
        kind = " differs" if special or failed else ""
        yield f'<div class="verdict{kind}"><h1>{escape(found.model.name)}</h1>'
        yield (
            f"<p>{format_count(found.inputs.done, 'input')} of "
            f"{escape(found.inputs.set.source)}. {', '.join(filter(None, facts))}.</p>"
        )
        for remark in found.remarks:
            yield f"<p>{escape(remark[0].upper() + remark[1:])}.</p>"
        yield "</div>"

    # Ranges

    def _ranges(self) -> Iterator[str]:
        if not self._operands:
            return
        shown = self._operands[:_MOST_OPERANDS]
        yield f"<h2>Ranges ({len(self._operands)})</h2>"
        copies = f" Copies that Split makes, left out: {self._copies}." if self._copies else ""
        yield (
            '<p class="legend">Histogram of all elements over the data set, with logarithmic '
            "heights, from the least to the greatest. Bar below: without the lowest and "
            f"highest thousandth. Dashed: zero.{copies}</p>"
        )
        yield '<div class="cards">'
        for operand in shown:
            yield self._card(operand)
        yield "</div>"
        if len(shown) < len(self._operands):
            yield f"<p>{len(self._operands) - len(shown)} more are in the summary.</p>"

    @staticmethod
    def _card(operand: OperandSummary) -> str:
        title = operand.operator or operand.name
        special = operand.nan + operand.inf
        facts = [
            f"mean {format_brief(operand.mean)} ± {format_brief(operand.std)}",
            f"{_share(operand.zeros / operand.count)} zeros" if operand.zeros else "",
            f'<span class="alarm">{format_count(special)} NaN or Inf</span>' if special else "",
        ]
        kind = f"{escape(operand.type)} · {format_shape(operand.shape)}"
        return (
            f'<section class="card"><h3 title="{escape(title)}, operand '
            f'{escape(operand.name)}"><bdi>{escape(title)}</bdi></h3><p>{kind}</p>'
            f"{draw_histogram(operand)}<p>{' · '.join(filter(None, facts))}</p></section>"
        )

    # Channels

    def _dead_channels(self) -> Iterator[str]:
        with_channels = [each for each in self._operands if each.channels.axis is not None]
        some = [each for each in with_channels if each.dead_channels.size]
        if not with_channels:
            return
        count = sum(len(each.dead_channels) for each in some)
        yield f"<h2>Dead channels ({format_count(count)})</h2>"
        if not some:
            yield "<p>No channel is all zeros with every input.</p>"
            return
        yield (
            '<p class="legend">All zeros with every input. Cells: the share of the inputs with '
            "which a channel is all zeros.</p>"
        )
        yield '<div class="scroll"><table><thead><tr><th>Operator</th><th>Type</th>'
        yield '<th class="n">Dead</th><th>Channels</th><th>Numbers</th></tr></thead><tbody>'
        for each in some:
            dead = each.dead_channels.tolist()
            yield (
                f"<tr><td>{escape(each.operator or each.name)}</td><td>{escape(each.type)}</td>"
                f'<td class="n">{len(dead)} of {len(each.channels.dead)}</td>'
                f'<td class="cells">{draw_channels(each.channels)}</td>'
                f'<td class="wide">{list_channels(dead)}</td></tr>'
            )
        yield "</tbody></table></div>"

    # Inputs

    def _unusual(self) -> Iterator[str]:
        if not self._operands:
            return
        found: dict[int, list[tuple[OutlierInput, OperandSummary]]] = {}
        for operand in self._operands:
            for outlier in operand.outliers:
                found.setdefault(outlier.index, []).append((outlier, operand))
        yield f"<h2>Unusual inputs ({len(found)})</h2>"
        if not found:
            yield "<p>No input is more than three standard deviations off.</p>"
            return
        yield (
            '<p class="legend">Inputs with which the root mean square of an operand is more '
            "than three standard deviations from that of the others, the farthest first.</p>"
        )
        ranked = sorted(
            found.items(),
            key=lambda each: (-max(abs(out.deviations) for out, _ in each[1]), each[0]),
        )
        yield '<div class="inputs">'
        with _opened(self._found) as reader:
            for index, places in ranked[:_MOST_PICTURED]:
                yield self._input_card(reader, index, _lines_of(places))
        yield "</div>"
        rest = ranked[_MOST_PICTURED:]
        if rest:
            yield f"<p>{format_count(len(rest), 'more input')}: numbers "
            yield f"{list_channels(sorted(index for index, _ in rest))}.</p>"

    @staticmethod
    def _input_card(
        reader: InputReader | None,
        index: int,
        lines: list[str],
    ) -> str:
        picture = draw_input(reader, index, _LARGE) if reader is not None else None
        name = reader.name(index) if reader is not None else f"input {index}"
        shown = (
            f'<img src="{embed_picture(picture)}" alt="Input {index}">'
            if picture is not None
            else '<div class="none">no picture</div>'
        )
        texts = "".join(f"<p>{line}</p>" for line in lines)
        return (
            f'<section class="card">{shown}<h3 title="{escape(name)}"><bdi>{escape(name)}'
            f"</bdi></h3>{texts}</section>"
        )

    def _studies(self) -> Iterator[str]:
        with _opened(self._found) as reader:
            yield from study_sections(
                self._found, lambda index, lines: self._input_card(reader, index, lines)
            )

    def _failed(self) -> Iterator[str]:
        inputs = self._found.inputs
        if not inputs.failed_count:
            return
        yield f"<h2>Inputs that could not be run ({format_count(inputs.failed_count)})</h2>"
        yield '<div class="scroll"><table><tbody>'
        for each in inputs.failed[:_MOST_FAILED]:
            yield f"<tr><td>{escape(each.name)}</td><td>{escape(each.bare_reason)}</td></tr>"
        yield "</tbody></table></div>"

    def _conditions(self) -> Iterator[str]:
        found, model = self._found, self._found.model
        yield "<h2>How to repeat it</h2>"
        options = found.options
        facts = [
            ("Written", datetime.now().astimezone().isoformat(" ", "seconds")),
            (Path(model.param).name, f"SHA-256 {model.sha256}"),
        ]
        if model.bin is not None:
            facts.append((Path(model.bin).name, f"SHA-256 {model.bin_sha256}"))
        facts += [
            ("Backend", f"{options.get('backend')}, random seed {options.get('seed')}"),
            ("Versions", ", ".join(versions())),
        ]
        yield from conditions(facts, self._command or self._default_command())

    def _default_command(self) -> list[str]:
        found = self._found
        limit = found.options.get("limit")
        return [
            "kuiper-studio", "sweep", found.model.param, "--inputs", found.inputs.set.source,
            *(["--limit", str(limit)] if limit is not None else []),
            "--output", str(found.path),
        ]  # fmt: skip


def _share(share: float) -> str:
    """Write a share in per cent; one that is not all, or not nothing, does not look so."""
    if 0 < share < 0.01:
        return "&lt;1%"
    return "&gt;99%" if 0.99 < share < 1 else f"{share:.0%}"


def _lines_of(places: list[tuple[OutlierInput, OperandSummary]]) -> list[str]:
    """Describe where an input is unusual."""
    ranked = sorted(places, key=lambda each: -abs(each[0].deviations))
    lines = [
        f"{escape(operand.operator or operand.name)}: {_signed(outlier.deviations)} σ, "
        f"root mean square {format_brief(outlier.level)}"
        for outlier, operand in ranked[:_MOST_NAMED]
    ]
    if len(ranked) > _MOST_NAMED:
        lines.append(f"and {format_count(len(ranked) - _MOST_NAMED, 'more operand')}")
    return lines


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")


@contextlib.contextmanager
def _opened(found: Sweep) -> Iterator[InputReader | None]:
    """Open the inputs of a sweep; None where they are not there any more."""
    try:
        reader = InputReader(found.inputs.set)
    except SweepError:
        yield None
        return
    try:
        yield reader
    finally:
        reader.close()
