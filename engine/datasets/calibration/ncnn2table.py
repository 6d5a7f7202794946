"""The thresholds of ncnn's own tool, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.atomic import format_os_error
from engine.datasets.calibration.layers import LARGEST
from engine.datasets.calibration.table import parse_table
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.datasets.calibration.thresholds import Method
    from engine.runtime import RuntimeGraph
    from engine.values import Array

__all__ = ["TOOL", "run_ncnn2table"]

TOOL: Final = "ncnn2table"
_METHODS: Final[tuple[Method, ...]] = ("kl", "aciq")  # those that both have
_MOST_INPUTS: Final = 100
_SECONDS: Final = 600


def run_ncnn2table(
    graph: RuntimeGraph, inputs: Iterable[Mapping[str, Array]], method: Method
) -> dict[str, float] | None:
    """Run ncnn2table from PATH on the same inputs.

    Parameters
    ----------
    graph : RuntimeGraph
        Of ncnn's own format.
    inputs : iterable of mapping of str to ndarray
        By operand name, all of the same shapes; the first hundred are used.
    method : str

    Returns
    -------
    dict of str to float or None
        Threshold by layer. None if the tool is not installed or does not have the method.

    Raises
    ------
    EngineError
        If the tool fails or writes no table.
    """
    tool = shutil.which(TOOL)
    if tool is None or method not in _METHODS or graph.bin_path is None:
        return None
    with tempfile.TemporaryDirectory(prefix="kuiper-ncnn2table-") as name:
        folder = Path(name)
        try:
            lists, shapes = _write_inputs(graph, islice(inputs, _MOST_INPUTS), folder)
            table = folder / "found.table"
            arguments = [
                tool, str(graph.param_path), str(graph.bin_path), ",".join(lists), str(table),
                f"shape={','.join(shapes)}", f"method={method}", "thread=1", "type=1",
            ]  # fmt: skip
            subprocess.run(  # noqa: S603 - no shell
                arguments, cwd=folder, capture_output=True, timeout=_SECONDS, check=True
            )
            scales = parse_table(table.read_text(encoding="utf-8"))
        except subprocess.TimeoutExpired as exc:
            raise EngineError(f"{TOOL} did not end within {_SECONDS} s") from exc
        except subprocess.CalledProcessError as exc:
            raise EngineError(f"{TOOL} failed with status {exc.returncode}") from exc
        except UnicodeDecodeError as exc:
            raise EngineError(f"{TOOL} wrote no text") from exc
        except OSError as exc:
            raise EngineError(f"{TOOL} wrote no table: {format_os_error(exc)}") from exc
    return {
        layer: LARGEST / each.activation for layer, each in scales.items() if each.activation
    }


def _write_inputs(
    graph: RuntimeGraph, inputs: Iterable[Mapping[str, Array]], folder: Path
) -> tuple[list[str], list[str]]:
    """Write the inputs as ``.npy``; return a list of them and their shape for each operand."""
    names = [operand.name for operand in graph.input_operands]
    paths: list[list[str]] = [[] for _ in names]
    shapes: list[str] = [""] * len(names)
    for number, arrays in enumerate(inputs):
        for place, name in enumerate(names):
            array = np.ascontiguousarray(arrays[name], np.float32)
            path = folder / f"{place}-{number}.npy"
            np.save(path, array, allow_pickle=False)
            paths[place].append(str(path))
            shapes[place] = f"[{','.join(map(str, reversed(array.shape)))}]"
    lists: list[str] = []
    for place, listed in enumerate(paths):
        path = folder / f"{place}.txt"
        path.write_text("\n".join([*listed, ""]), encoding="utf-8")
        lists.append(str(path))
    return lists, shapes
