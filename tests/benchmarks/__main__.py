"""Command line: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Absent, Bench, Row
from benchmarks.points import POINTS

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD = ("", "ours", "beside it", "", "", "at most", "")
_WIDTHS = (54, 9, 36, 9, 9, 8, 6)
_TO_THE_LEFT = (0, 2, 6)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table row by row."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory(prefix="kuiper-studio-bench-") as folder:
        # What is found out about kernels here is not for the user's own cache.
        os.environ["KUIPER_STUDIO_CACHE"] = f"{folder}/cache"
        print(_line(_HEAD))
        for point in POINTS:
            if options.only and point.number not in options.only:
                continue
            print(f"{point.number:2}  {point.title}", flush=True)
            place = Path(folder, point.number)
            place.mkdir()
            try:
                for row in point.rows(_bench(options, place)):
                    print(
                        _line(_cells(row)) if isinstance(row, Row) else f"  {row}", flush=True
                    )
            except Absent as exc:
                print(f"    skipped: {exc}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    models = os.environ.get("KUIPER_MODELS")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NUMBER",
        choices=[point.number for point in POINTS],
        help=f"one of {', '.join(point.number for point in POINTS)}; may be repeated",
    )
    parser.add_argument("--rounds", type=int, default=9, help="turns that each takes (9)")
    parser.add_argument(
        "--models",
        type=Path,
        default=Path(models) if models else None,
        metavar="DIR",
        help="folder of exported networks (the variable KUIPER_MODELS)",
    )
    parser.add_argument(
        "--network",
        action="append",
        default=[],
        metavar="NAME",
        help="measure this one where there is a choice; may be repeated",
    )
    return parser


def _bench(options: argparse.Namespace, folder: Path) -> Bench:
    return Bench(options.rounds, folder, options.models, tuple(options.network))


def _cells(row: Row) -> tuple[str, ...]:
    target = "" if row.target is None else f"{row.target:g} {row.unit}"
    value = f"{row.value:.3g}" if abs(row.value) < 1000 else f"{row.value:.0f}"
    shown = f"{value} {row.unit}"
    return (f"    {row.what}", row.ours, row.beside, row.other, shown, target, row.verdict)


def _line(cells: Sequence[str]) -> str:
    parts = (
        cell.ljust(width) if place in _TO_THE_LEFT else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True))
    )
    return "  ".join(parts).rstrip()


if __name__ == "__main__":
    main()
