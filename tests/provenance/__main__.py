"""Command line: ``python -m provenance FOLDER``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

# One thread: the machine has other things to do, and times are the processor's.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from provenance.campaign import Findings, find_pairs, try_pair


def main() -> int:
    """Run the campaign; the exit status is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m provenance", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--elements", type=int, default=8, metavar="N", help="an operand (8)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--only", default="", metavar="TEXT", help="pairs with this in a name")
    parser.add_argument("--times", action="store_true", help="print the slowest types")
    options = parser.parse_args()
    findings, rng, pairs = Findings(), np.random.default_rng(options.seed), 0
    started = time.perf_counter()
    for folder in options.folders:
        for pair in find_pairs(folder):
            if options.only in pair.name:
                pairs += 1
                before = len(findings.wrong)
                try_pair(pair, findings, rng, options.elements, options.backend)
                print(
                    *findings.wrong[before:],
                    sep="\n",
                    end="\n" * (len(findings.wrong) > before),
                )
    print(*findings.stopped, sep="\n")
    for title, counts in (
        ("without terms", findings.unexplained),
        ("without slopes", findings.unfollowed),
    ):
        print(f"{counts.total()} elements {title}")
        for text, count in counts.most_common():
            print(f"{count:7d} {text}")
    if options.times:
        slowest = sorted(findings.milliseconds.items(), key=lambda item: -max(item[1]))
        for kind, times in slowest[:25]:
            print(f"{kind:40s} {np.median(times):8.2f} ms, at most {max(times):8.2f} ms")
    print(
        f"{pairs} pairs, {findings.operators} operators: {findings.explained} elements with "
        f"terms, {findings.fields} fields, {findings.slopes} slopes; "
        f"{len(findings.wrong)} wrong; {time.perf_counter() - started:.0f} s"
    )
    return int(bool(findings.wrong))


if __name__ == "__main__":
    sys.exit(main())
