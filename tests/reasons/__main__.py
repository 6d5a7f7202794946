"""Command line: ``python -m reasons``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter

# One thread suffices, because the tensors are small.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from reasons.campaign import outcomes

BOUND = 0.95


def main() -> int:
    """Run the campaign; the exit status is 1 below the bound."""
    parser = argparse.ArgumentParser(prog="python -m reasons", description=__doc__)
    parser.add_argument("--seeds", type=int, default=8, metavar="N", help="of each fault (8)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="first seed (0)")
    parser.add_argument("--only", default="", metavar="TEXT", help="faults with this in a name")
    parser.add_argument("--verbose", action="store_true", help="print every reason")
    options = parser.parse_args()
    started = time.perf_counter()
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for one in outcomes(range(options.first, options.first + options.seeds), options.only):
        total[one.name] += 1
        right[one.name] += one.is_right
        if options.verbose or not one.is_right:
            print("ok  " if one.is_right else "FAIL", one.name, one.seed, sorted(one.wanted))
            for reason in one.reasons:
                print(f"     {reason.explains:.4f} {reason.kind}: {reason.text}")
    for name, count in total.items():
        if right[name] < count:
            print(f"{name}: {right[name]} of {count}")
    share = right.total() / max(total.total(), 1)
    print(f"{right.total()} of {total.total()} right ({share:.1%}), "
          f"{time.perf_counter() - started:.1f} s")  # fmt: skip
    return int(share < BOUND)


if __name__ == "__main__":
    sys.exit(main())
