"""Many drawn cases as one module, exported with pnnx."""

from __future__ import annotations

import subprocess
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pnnx
import torch
from torch import nn

from crosscheck import torchscript
from crosscheck.compare import array_of
from crosscheck.specification import flatten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crosscheck.specification import Drawn

__all__ = ["RAW", "Bundle", "ExportError"]

RAW = -1

_NAME = "bundle"
_SECONDS = 120


class ExportError(Exception):
    """pnnx wrote no usable files."""


@dataclass
class Bundle:
    """Cases that are exported together.

    Attributes
    ----------
    drawn : sequence of Drawn
        Either all of them have a second size of input, or none.
    level : int
        Of pnnx's optimisation; `RAW` for TorchScript as it stands.
    folder : Path
        Where the files go.
    """

    drawn: Sequence[Drawn]
    level: int
    folder: Path

    @property
    def param(self) -> Path:
        """The graph."""
        return self.folder / f"{_NAME}.pnnx.param"

    @property
    def script(self) -> Path:
        """The graph as a Python script."""
        return self.folder / f"{_NAME}_pnnx.py"

    def inputs(self, *, other: bool = False) -> list[torch.Tensor]:
        """Inputs of all cases."""
        cases = [drawn.case for drawn in self.drawn]
        found = [x for case in cases for x in ((case.other or ()) if other else case.inputs)]
        return found or [torch.zeros(1)]  # what has no input at all cannot be traced

    def results(self, *, other: bool = False) -> list[list[torch.Tensor]]:
        """What the modules give, flattened, for each case."""
        return [d.other_results if other else d.results for d in self.drawn]

    def trace(self) -> None:
        """Write the TorchScript file and the inputs that pnnx takes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        traced = self._traced()
        if self.level == RAW:
            torchscript.write(torchscript.frozen(traced), self.param)
            return
        traced.save(str(self.folder / f"{_NAME}.pt"))
        for other in (False, True) if self.drawn[0].case.other else (False,):
            for file, x in zip(
                self._input_files(other=other), self.inputs(other=other), strict=True
            ):
                np.save(self.folder / file, array_of(x.contiguous()))

    def _traced(self) -> torch.jit.ScriptModule:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            return torch.jit.trace(
                _Together(self.drawn), tuple(self.inputs()), check_trace=False
            )

    def is_possible(self) -> bool:
        """Whether the graph could say what the modules do."""
        return self.level != RAW or not torchscript.writes_into_operands(
            torchscript.frozen(self._traced())
        )

    def convert(self) -> None:
        """Run pnnx.

        Raises
        ------
        ExportError
            If it leaves no graph, no weights or no script.
        """
        if self.level == RAW:
            return
        command = [pnnx.EXEC_PATH, f"{_NAME}.pt", "fp16=0", f"optlevel={self.level}"]
        for other in (False, True) if self.drawn[0].case.other else (False,):
            files = ",".join(self._input_files(other=other))
            command.append(f"input{'2' if other else ''}={files}")
        try:
            done = subprocess.run(
                command, cwd=self.folder, capture_output=True, timeout=_SECONDS, check=False
            )
            said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            end = f"exit status {done.returncode}, {' '.join(said)}"
        except subprocess.TimeoutExpired:
            end = f"no end after {_SECONDS} s"
        for path in (self.param, self.param.with_suffix(".bin"), self.script):
            if not path.exists():
                raise ExportError(f"pnnx wrote no {path.name}: {end}")

    def _input_files(self, *, other: bool) -> list[str]:
        kind = "other" if other else "input"
        return [f"{kind}_{i}.npy" for i in range(len(self.inputs(other=other)))]


class _Together(nn.Module):
    """The modules of several cases side by side."""

    def __init__(self, drawn: Sequence[Drawn]) -> None:
        super().__init__()
        self.cases = nn.ModuleList(one.case.module for one in drawn)
        self.counts = [len(one.case.inputs) for one in drawn]

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rest, results = list(inputs), []
        for module, count in zip(self.cases, self.counts, strict=True):
            results.extend(flatten(module(*rest[:count])))
            del rest[:count]
        return tuple(results)
