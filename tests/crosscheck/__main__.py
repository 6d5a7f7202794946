"""Command line: ``python -m crosscheck``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

# One thread: the machine has other things to do, and the tensors are small.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from crosscheck.check import check_all
from crosscheck.export import RAW, Bundle
from crosscheck.report import Report
from crosscheck.specification import all_specs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crosscheck.specification import Drawn, Spec


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cross-check; the exit status is 1 if anything differs."""
    options = _parser().parse_args(arguments)
    specs = [
        s for s in all_specs() if not options.only or any(o in s.name for o in options.only)
    ]
    if options.list:
        print(*(f"{s.name}: {' '.join(s.types)}" for s in specs), sep="\n")
        return 0
    started = time.perf_counter()
    report = Report(specs)
    bundles = _bundles(specs, options.seeds, options.levels, options.bundle)
    for outcome in check_all(bundles, jobs=options.jobs, keep=options.keep):
        report.add(outcome)
        if outcome.fault and report.faults(outcome.drawn.spec) <= options.show:
            print(f"FAIL {outcome.drawn}, level {outcome.level}: {outcome.fault}", flush=True)
    print(report.summary(time.perf_counter() - started))
    if options.missing:
        print("not met:", *report.not_met())
    return 1 if report.failed or not report.cases else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m crosscheck", description=__doc__)
    for flag, metavar, kind, default, text in (
        ("--seeds", "N|A:B", _seeds, range(1), "cases of each specification, or which (1)"),
        ("--levels", "L,L", _levels, (2,), "0, 1, 2: of pnnx's optimisation; raw: without (2)"),
        ("--bundle", "N", int, 60, "cases in one export (60)"),
        ("--jobs", "N", int, 2, "exports that run at a time (2)"),
        ("--show", "N", int, 3, "differing cases of a specification that are shown (3)"),
        ("--keep", "DIR", Path, None, "leave the files of differing cases here"),
    ):
        parser.add_argument(flag, metavar=metavar, type=kind, default=default, help=text)
    parser.add_argument(
        "--only",
        action="append",
        metavar="TEXT",
        help="specifications with this in their name or types; may be repeated",
    )
    parser.add_argument(
        "--missing", action="store_true", help="list the types with a layer that were not met"
    )
    parser.add_argument("--list", action="store_true", help="list the specifications")
    return parser


def _chosen(spec: Spec, texts: Sequence[str] | None) -> bool:
    return not texts or any(text in name for text in texts for name in (spec.name, *spec.types))


def _seeds(text: str) -> range:
    first, colon, last = text.partition(":")
    return range(int(first), int(last)) if colon else range(int(first))


def _levels(text: str) -> tuple[int, ...]:
    return tuple(RAW if level == "raw" else int(level) for level in text.split(","))


def _bundles(
    specs: Sequence[Spec], seeds: range, levels: Sequence[int], size: int
) -> Iterator[tuple[list[Drawn], int]]:
    """Cases to export together: of one level, and with or without a second size."""
    for level in levels:
        gathered: dict[bool, list[Drawn]] = {False: [], True: []}
        for seed in seeds:
            for spec in specs:
                if level not in {*spec.levels, RAW}:
                    continue
                drawn = spec.drawn(seed)
                if not Bundle([drawn], level, Path()).is_possible():
                    continue
                group = gathered[drawn.case.other is not None]
                group.append(drawn)
                if len(group) == size:
                    yield list(group), level
                    group.clear()
        yield from ((group, level) for group in gathered.values() if group)


if __name__ == "__main__":
    sys.exit(main())
