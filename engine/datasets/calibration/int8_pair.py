"""Writes a pair of ncnn whose layers compute in int8, as ncnn2int8 does from a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.atomic import write_file
from engine.datasets.calibration.layers import int8_twin, quantisable_layers
from engine.errors import EngineError
from engine.ncnn.reader import ncnn_name
from engine.ncnn.types import param_id
from engine.ncnn.weights import encode_layer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from engine.datasets.calibration.layers import LayerScales
    from engine.runtime import RuntimeGraph

__all__ = ["write_int8_pair"]

_HEADER: Final = 2  # lines
_FIXED: Final = 4  # words of a line before its blobs
_TERM: Final = "int8_scale_term"
_MASK: Final = "featmask"
_MASK_ID: Final = 31


def write_int8_pair(
    graph: RuntimeGraph, scales: Mapping[str, LayerScales], param: Path
) -> tuple[Path, Path]:
    """Write a model of ncnn with some layers in int8.

    The lines of all other layers and the storage of their weights stay; a weight that was an
    index into a table becomes float32.

    Parameters
    ----------
    graph : RuntimeGraph
        Of ncnn's own format, with weights.
    scales : mapping of str to LayerScales
        By layer.
    param : Path
        The ``.param`` to write; the ``.bin`` beside it has the same name.

    Returns
    -------
    tuple of Path
        The ``.param`` and the ``.bin``.

    Raises
    ------
    EngineError
        If the model has a layer that ncnn does not know, or is not of ncnn's format.
    OSError
        If writing fails.
    """
    if graph.file.format != "ncnn":
        raise EngineError("only a model in ncnn's own format can become an int8 pair")
    twins = {
        operator.name: int8_twin(operator, scales[operator.name])
        for operator in quantisable_layers(graph)
        if operator.name in scales
    }
    lines = graph.param_path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    places = [n for n, line in enumerate(lines) if n >= _HEADER and line.split()]
    pieces: list[bytes] = []
    # The file's own order; the operators that end outputs come last and have no line.
    for operator, place in zip(graph.file.operators, places, strict=False):
        kind = ncnn_name(operator.type)
        if not kind:
            raise EngineError(
                f"layer {operator.name} has type {operator.type}, which ncnn does not know, so "
                "no int8 pair can be written"
            )
        used = twins.get(operator.name) or graph.operator(operator.name)
        pieces += encode_layer(kind, used.params, used.attributes)
        if operator.name in twins:
            changed = {
                key: used.params[name]
                for key, name in ((param_id(kind, _TERM), _TERM), (_MASK_ID, _MASK))
                if name in used.params
            }
            lines[place] = _with_params(lines[place], changed)
    bin_path = param.with_suffix(".bin")
    write_file(bin_path, b"".join(pieces))
    write_file(param, "\n".join(lines).encode("utf-8", "surrogateescape"))
    return param, bin_path


def _with_params(line: str, changed: Mapping[int, object]) -> str:
    """Return the line of a layer with some parameters set."""
    words = line.split()
    fixed = _FIXED + int(words[2]) + int(words[3])
    stays = [word for word in words[fixed:] if word.partition("=")[0] not in map(str, changed)]
    return " ".join([*words[:fixed], *stays, *(f"{key}={new}" for key, new in changed.items())])
