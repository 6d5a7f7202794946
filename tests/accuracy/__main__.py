"""Command line: ``python -m accuracy``."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import TYPE_CHECKING

from accuracy.functions import FUNCTIONS
from accuracy.kernels import eager_errors, errors
from accuracy.measure import RANGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WIDTH = 58


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a row for each kernel of each function."""
    parser = argparse.ArgumentParser(prog="python -m accuracy", description=__doc__)
    parser.add_argument("--points", type=int, default=1 << 21, help="inputs of each (2097152)")
    parser.add_argument("--only", default="", metavar="TEXT", help="functions with this name")
    options = parser.parse_args(arguments)
    print("Largest error in units in the last place of float32, by range of the input,")
    print("whose upper ends are")
    print(_row("", (f"{high:g}" for _, high in RANGES)))
    for name, function in FUNCTIONS.items():
        if options.only not in name:
            continue
        print(name)
        if find_spec("torch") is not None:
            print(_row("  PyTorch", map(_number, eager_errors(function, options.points))))
        for strategy, largest in errors(function, options.points):
            print(_row(f"  {strategy}", map(_number, largest)), flush=True)


def _row(title: str, cells: Iterable[str]) -> str:
    return f"{title:{_WIDTH}}" + "".join(f"{cell:>9}" for cell in cells)


def _number(error: float) -> str:
    return f"{error:.3g}"


if __name__ == "__main__":
    main()
