"""Whole networks, operand by operand: ``python -m crosscheck.networks FOLDER [NAME ...]``.

The folder holds NAME.pt, a traced network, and NAME.inputs.npz with its inputs in0, in1, ....
Each is exported with pnnx; what the graph computes here is compared with what its script
computes in PyTorch, and what comes out with the traced network itself.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pnnx
import torch

import engine
from crosscheck.compare import array_of
from crosscheck.script import operand_values, variable
from engine.values import flatten_value

if TYPE_CHECKING:
    from collections.abc import Sequence

TOLERANCE = 1e-3
_LETTERS = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "bool": "bool"}


@dataclass
class Comparison:
    """What a comparison of one network found.

    Attributes
    ----------
    operands, compared : int
        How many there are, and how many of them PyTorch can show.
    largest : float
        Largest difference, relative to a number of 1 or more.
    place : str
        Where that is.
    wrong : list of str
        Operands that differ by more than `TOLERANCE`, relative and absolute.
    """

    operands: int = 0
    compared: int = 0
    largest: float = 0.0
    place: str = ""
    wrong: list[str] = field(default_factory=list)

    def add(self, name: str, got: Any, want: Any) -> None:
        """Compare an operand."""
        mine, theirs = list(flatten_value(got)), _members(want)
        self.compared += 1
        if len(mine) != len(theirs):
            self.wrong.append(name)
            return
        for one, other in zip(mine, theirs, strict=True):
            a = np.asarray(one)
            b = array_of(other) if isinstance(other, torch.Tensor) else np.asarray(other)
            if a.shape != b.shape or a.dtype != b.dtype:
                self.wrong.append(name)
                continue
            if not np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                self.wrong.append(name)
            if b.size and b.dtype.kind == "f":
                off = float(np.nanmax(np.abs(a - b) / np.maximum(1, np.abs(b))))
                if off > self.largest:
                    self.largest, self.place = off, name


def _members(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _members(item)]
    return [value]


def compare(folder: Path, name: str, backend: str) -> Comparison:
    """Export a network, run it here and in PyTorch, and compare."""
    with np.load(folder / f"{name}.inputs.npz") as stored:
        arrays = [stored[f"in{i}"] for i in range(len(stored.files))]
    inputs = [torch.from_numpy(array) for array in arrays]
    with tempfile.TemporaryDirectory() as scratch, torch.inference_mode():
        stem = Path(scratch, name)
        shapes = ",".join(f"{list(a.shape)}{_LETTERS[a.dtype.name]}" for a in arrays)
        command = [pnnx.EXEC_PATH, str(folder / f"{name}.pt"), "fp16=0"]
        command += [f"inputshape={shapes}".replace(" ", "")]
        for kind, suffix in {
            "pnnxparam": ".pnnx.param", "pnnxbin": ".pnnx.bin", "pnnxpy": "_pnnx.py",
            "pnnxonnx": ".onnx", "ncnnparam": ".ncnn.param", "ncnnbin": ".ncnn.bin",
            "ncnnpy": "_ncnn.py",
        }.items():  # fmt: skip
            command.append(f"{kind}={stem}{suffix}")
        subprocess.run(command, cwd=scratch, capture_output=True, check=False)
        graph = engine.load(f"{stem}.pnnx.param")
        session = engine.Session(graph, backend=backend)
        session.feed(arrays)
        session.run()
        scripted = operand_values(Path(f"{stem}_pnnx.py"), inputs)
        result = Comparison()
        for operator in graph.operators:
            for operand in operator.outputs:
                result.operands += 1
                wanted = scripted.get(variable(operand.name))
                if wanted is not None:
                    result.add(operand.name, session.value(operand.name), wanted)
        network = torch.jit.load(str(folder / f"{name}.pt"))
        leaves = zip(session.outputs(), _members(network(*inputs)), strict=True)
        for place, (got, want) in enumerate(leaves):
            result.operands += 1
            result.add(f"output {place}", got, want)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare networks; the exit status is 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m crosscheck.networks", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("names", metavar="NAME", nargs="*")
    parser.add_argument("--backend", default="auto")
    options = parser.parse_args(arguments)
    names = options.names or sorted(path.stem for path in options.folder.glob("*.pt"))
    print(f"{'network':<20} {'operands':>9} {'compared':>9}  largest difference")
    wrong = 0
    for name in names:
        found = compare(options.folder, name, options.backend)
        wrong += len(found.wrong)
        faults = f"  DIFFER: {', '.join(found.wrong[:8])}" if found.wrong else ""
        print(
            f"{name:<20} {found.operands:>9} {found.compared:>9}  {found.largest:.1e} at "
            f"{found.place}{faults}",
            flush=True,
        )
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main())
