"""The page: verdict, origins with pictures, plot, tables, and how to repeat the comparison."""

from __future__ import annotations

import math
from datetime import datetime
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.atomic import format_os_error
from engine.comparison.report.figures import draw_error_plot, draw_tensors
from engine.comparison.rows import Status
from engine.dump.manifest import file_hash
from engine.errors import EngineError
from engine.pages import conditions, page_lines, versions, write_page
from engine.text import format_brief, format_count, format_shape, format_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.comparison.references import Reference
    from engine.comparison.rows import Comparison, Origin, Row, UnmatchedTensor
    from engine.session import Session

__all__ = ["write_report"]

_MOST_PICTURED: Final = 12  # origins with pictures; the rest are only listed
_MOST_ROWS: Final = 4000  # rows of the table, so that a page stays small
_COLUMNS: Final = (
    ("#", True),
    ("Status", False),
    ("Operator", False),
    ("Type", False),
    ("Operand", False),
    ("Reference", False),
    ("Matched by", False),
    ("Shape", False),
    ("max abs", True),
    ("max rel", True),
    ("cosine", True),
    ("dB", True),
    ("within 1‰", True),
    ("born", True),
    ("inherited", True),
)


def write_report(
    comparison: Comparison,
    session: Session,
    reference: Reference,
    path: str | Path,
    *,
    command: Sequence[str] = (),
    check_cancelled: Callable[[], None] = lambda: None,
) -> Path:
    """Write a comparison as one HTML page that needs no other file and no script.

    Parameters
    ----------
    comparison : Comparison
    session : Session
        The finished run that was compared.
    reference : Reference
    path : str or Path
        An existing file is replaced.
    command : sequence of str, optional
        The command line that repeats the comparison.
    check_cancelled : callable, optional
        Called at times; an exception ends the writing, and nothing is written.

    Returns
    -------
    Path

    Raises
    ------
    ExportError
        If it cannot be written.
    """
    target = Path(path)
    page = _Page(comparison, session, reference, command, check_cancelled)
    write_page(target, page.lines())
    return target


class _Page:
    """Makes the lines of a page."""

    def __init__(
        self,
        comparison: Comparison,
        session: Session,
        reference: Reference,
        command: Sequence[str],
        check_cancelled: Callable[[], None],
    ) -> None:
        self._comparison, self._session, self._reference = comparison, session, reference
        self._command, self._check_cancelled = command, check_cancelled
        self._rows = {row.operand: row for row in comparison.rows}

    def lines(self) -> Iterator[str]:
        name = self._session.graph.source_path.name
        style = resources.files("engine.comparison.report").joinpath("report.css")
        yield from page_lines(f"{name} compared", style, self._body(name))

    def _body(self, name: str) -> Iterator[str]:
        yield from self._verdict(name)
        yield from self._origins()
        yield from self._plot()
        yield from self._table()
        yield from self._unmatched()
        yield from self._conditions()

    def _verdict(self, name: str) -> Iterator[str]:
        comparison, rows = self._comparison, self._comparison.rows
        counts = {status: sum(row.status is status for row in rows) for status in Status}
        found = ", ".join(
            format_count(count, "origin")
            if status is Status.ORIGIN
            else f"{count} {status.value}"
            for status, count in counts.items()
            if count
        )
        origins = format_count(len(comparison.origins), "origin")
        differs, reference = comparison.verdict == "differs", escape(comparison.reference)
        missing = ", ".join(map(escape, comparison.missing_outputs))
        same = ", ".join(filter(None, ("Same", comparison.reservation)))
        title = f"Differs: {origins}" if differs else same
        glyph, kind = ("≠", " differs") if differs else ("=", "")
        text = f"{escape(name)} compared with {reference}. Operands: {found}."
        if comparison.advice:
            glyph, kind, title = "?", "", "Nothing compared"
            text = escape(comparison.advice)
        yield f'<div class="verdict{kind}"><h1><span>{glyph}</span> {title}</h1>'
        yield f"<p>{text}</p>"
        if missing:
            yield f"<p>Outputs of the model that were not compared: {missing}.</p>"
        if comparison.reference_failure:
            yield f"<p>The reference is incomplete: {escape(comparison.reference_failure)}.</p>"
        tolerance = comparison.tolerances
        exact, half = map(format_brief, (tolerance.float32, tolerance.float16))
        yield (
            f"<p>Tolerance: {exact} of the reference's largest element (float16: "
            f"{half}).</p></div>"
        )

    # Origins

    def _origins(self) -> Iterator[str]:
        origins = self._comparison.origins
        if not origins:
            return
        yield "<h2>Where differences begin</h2>"
        for number, origin in enumerate(origins):
            self._check_cancelled()
            label = origin.operator
            yield '<section class="card">'
            yield (
                f"<h3>{label.index} {escape(label.name)} "
                f'<span class="type">{escape(label.type)}</span></h3>'
            )
            yield f"<p>{escape(origin.text)}.</p>"
            yield from self._reasons(origin)
            if number < _MOST_PICTURED:
                yield from self._pictures(origin)
            yield "</section>"

    def _reasons(self, origin: Origin) -> Iterator[str]:
        if not origin.reasons:
            yield f"<p>{escape(origin.unexplained)}</p>"
            return
        yield '<ol class="reasons">'
        for reason in origin.reasons:
            share = format_share(reason.explains)
            yield (
                f'<li><div><code>{escape(reason.kind)}</code><div class="bar">'
                f'<i style="width:{100 * reason.explains:.1f}%"></i></div>'
                f'<span class="share">explains {share}</span></div>'
                f"<div>{escape(reason.text)}</div></li>"
            )
        yield "</ol>"

    def _pictures(self, origin: Origin) -> Iterator[str]:
        row = self._rows[origin.operand]
        try:
            ours = self._session.value(origin.operand)
            if not isinstance(ours, np.ndarray):
                return
            theirs = row.load(self._reference)
        except EngineError as exc:
            yield f"<p>{escape(str(exc))}</p>"
            return
        if not (is_numeric(ours) and is_numeric(theirs)):
            return
        drawn = draw_tensors(ours, theirs, origin.index)
        channel = f" · channel {drawn.channel}" if drawn.channel else ""
        yield '<div class="pictures">'
        for title, picture, shown in (
            ("Ours", drawn.ours, drawn.value_range),
            ("Reference", drawn.reference, drawn.value_range),
            ("Difference", drawn.difference, drawn.difference_range),
        ):
            if picture:
                yield (
                    f'<figure><img src="{picture}" alt="{title}"><figcaption><b>{title}</b>'
                    f"{channel} · {shown}</figcaption></figure>"
                )
        yield "</div>"
        if origin.index and ours.shape == theirs.shape:
            mine, other = _distinct(ours[origin.index].item(), theirs[origin.index].item())
            yield (
                f"<p>Worst element <code>{list(origin.index)}</code>: ours "
                f"<code>{mine}</code>, reference <code>{other}</code>.</p>"
            )

    # Plot and tables

    def _plot(self) -> Iterator[str]:
        tolerance = self._comparison.tolerances.float32
        yield "<h2>Error along the network</h2>"
        yield draw_error_plot(self._comparison.rows, tolerance)
        yield (
            '<p class="legend">Largest difference, relative to the reference\'s largest '
            "element. Filled: equal or born here. Outlined: inherited. Tick: the share that is "
            "born here. Dashed: tolerance.</p>"
        )

    def _table(self) -> Iterator[str]:
        rows: Sequence[Row] = self._comparison.rows
        yield f"<h2>Operands ({len(rows)})</h2>"
        if len(rows) > _MOST_ROWS:
            rows = self._most_telling(rows)
            yield f"<p>The {_MOST_ROWS} with the largest differences.</p>"
        yield '<div class="scroll"><table><thead><tr>'
        yield "".join(
            f'<th class="n">{name}</th>' if number else f"<th>{name}</th>"
            for name, number in _COLUMNS
        )
        yield "</tr></thead><tbody>"
        for row in rows:
            yield _format_row(row)
        yield "</tbody></table></div>"

    @staticmethod
    def _most_telling(rows: Sequence[Row]) -> list[Row]:
        def rank(row: Row) -> tuple[bool, float]:
            relative = row.measures.relative if row.measures is not None else 0.0
            return row.status is not Status.ORIGIN, -relative

        chosen = sorted(rows, key=rank)[:_MOST_ROWS]
        return sorted(chosen, key=lambda row: row.operator.index)

    def _unmatched(self) -> Iterator[str]:
        unmatched = self._comparison.unmatched
        for title, listed in (
            ("Operands without a counterpart", unmatched.ours),
            ("Tensors of the reference without a counterpart", unmatched.reference),
        ):
            if listed:
                yield f"<h2>{title} ({len(listed)})</h2>"
                yield from _list_unmatched(listed)

    def _conditions(self) -> Iterator[str]:
        graph = self._session.graph
        yield "<h2>How to repeat the comparison</h2>"
        files = filter(None, (graph.param_path, graph.bin_path))
        facts = [
            ("Written", datetime.now().astimezone().isoformat(" ", "seconds")),
            *((path.name, f"SHA-256 {self._hash(path)}") for path in files),
            ("Backend", f"{self._session.backend}, random seed {self._session.seed}"),
            ("Versions", ", ".join(versions())),
        ]
        yield from conditions(facts, self._command)

    def _hash(self, path: Path) -> str:
        try:
            return file_hash(path, self._check_cancelled)
        except OSError as exc:
            return f"unknown: {format_os_error(exc)}"


def _format_row(row: Row) -> str:
    measures, label = row.measures, row.operator
    numbers: list[float | None] = [None] * 5
    if measures is not None:
        numbers = [
            measures.max_abs,
            measures.max_rel,
            measures.cosine,
            measures.snr_db,
            measures.within_permille,
        ]
    texts = [
        label.name,
        label.type,
        row.operand,
        row.reference,
        f"{row.matched_by} {row.confidence:.2f}",
        format_shape(row.shape),
        *map(_format_number, (*numbers, row.born, row.inherited)),
    ]
    tip = f' title="{escape(row.reason)}"' if row.reason else ""
    cells = [
        f'<td class="n">{label.index}</td><td class="status"{tip}>{row.status.value}</td>',
        *(
            f'<td class="n">{escape(text)}</td>' if number else f"<td>{escape(text)}</td>"
            for text, (_, number) in zip(texts, _COLUMNS[2:], strict=True)
        ),
    ]
    kind = "same" if row.excused else row.status.name.lower()
    return f'<tr class="{kind}">{"".join(cells)}</tr>'


def _distinct(mine: complex, other: complex) -> tuple[str, str]:
    """Format two numbers that differ, in enough digits to see it."""
    texts = [(f"{mine:.{digits}g}", f"{other:.{digits}g}") for digits in (6, 9, 17)]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[0])


def _format_number(value: float | None) -> str:
    return format_brief(value) if value is not None and math.isfinite(value) else "–"


def _list_unmatched(listed: Sequence[UnmatchedTensor]) -> Iterator[str]:
    yield '<div class="scroll"><table><tbody>'
    for tensor in listed[:_MOST_ROWS]:
        yield f"<tr><td>{escape(tensor.operand)}</td><td>{escape(tensor.reason)}</td></tr>"
    yield "</tbody></table></div>"
