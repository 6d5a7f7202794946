"""The ``.bin`` file of ncnn: weights without names, in the order of the layers.

Follows ModelBinFromDataReader of ncnn's ``src/modelbin.cpp`` (a4d2ea1, July 2026). A weight is
either plain (float32, or the bytes of a MemoryData), or preceded by a tag for its storage:
float32, float16, bfloat16, int8, or a table of 256 float32 and an index into it for each
element. Sizes come from the parameters of the layers, so a file that does not fit them is
noticed before anything is read.

pnnx also writes weights of operators that it could not convert, and their sizes are unknown.
The weights after those cannot be located, nor can weights after a layer with contradictory
parameters.
"""

from __future__ import annotations

import json
import math
import struct
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
from typing_extensions import override

from engine.errors import ModelFileError
from engine.ncnn.reader import ncnn_name
from engine.ncnn.types import weight_specs
from engine.pnnx.archive import Archive
from engine.pnnx.attribute import ITEMSIZES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from engine.ncnn.types import WeightSpec
    from engine.pnnx.attribute import WeightArchive
    from engine.pnnx.graph import Graph
    from engine.values import Value

__all__ = ["RawWeights", "bind", "encode_layer", "encode_weight"]

_TAG: Final = struct.Struct("<I")
_DTYPES: Final = {
    0: "f32", 0x0002C056: "f32", 0x01306B47: "f16", 0x01348B83: "bf16", 0x000D4B38: "i8",
}  # fmt: skip
# The numbers of bfloat16 are held as float32, and are written so.
_TAGS: Final = {"f32": 0, "bf16": 0, "f16": 0x01306B47, "i8": 0x000D4B38}
_ALIGNMENT: Final = 4
_TABLE: Final = 256  # float32


class _Slot(NamedTuple):
    """The position of a weight in the file.

    Attributes
    ----------
    dtype : str
        Of the decoded weight, in PNNX's names.
    offset, nbytes : int
        Of its bytes in the file, without the tag but with a table.
    is_indexed : bool
        Whether the bytes are a table and indexes into it.
    """

    dtype: str
    offset: int
    nbytes: int
    is_indexed: bool = False


class RawWeights(Archive):
    """An open ``.bin`` of ncnn; its weights are views of a private copy.

    Parameters
    ----------
    path : Path
    graph : Graph
        Its layers determine the contents of the file.

    Attributes
    ----------
    directory : bytes
        The position of each weight, as JSON; ncnn's file has no directory of its own.

    Raises
    ------
    ModelFileError
        If the file cannot be read, or is shorter or longer than the layers need.
    """

    def __init__(self, path: Path, graph: Graph) -> None:
        self._layers = graph.operators
        self._slots: dict[str, _Slot] = {}
        self._indexed: dict[int, int] = {}  # bytes in the file, by offset
        super().__init__(path)
        self._layers = []

    @override
    def view(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """Return the decoded bytes of a weight; see `Archive.view`."""
        stored = self._indexed.get(offset)
        if stored is None:
            return super().view(offset, nbytes)
        data = super().view(offset, stored)
        table = data[: 4 * _TABLE].view("<f4")
        decoded = table[data[4 * _TABLE :][: nbytes // 4]].view(np.uint8)
        decoded.flags.writeable = False
        return decoded

    @override
    def _read_directory(self) -> bytes:
        self._find_weights()
        self.entries = {name: (s.offset, s.nbytes) for name, s in self._slots.items()}
        self._indexed = {s.offset: s.nbytes for s in self._slots.values() if s.is_indexed}
        listed = {name: (s.dtype, s.offset) for name, s in self._slots.items()}
        return json.dumps([self.version.size, listed]).encode()

    @cached_property
    @override
    def _stated(self) -> dict[int, tuple[bytes, int]]:
        """Return the name of each weight by its offset; there are no checksums."""
        return {offset: (name.encode(), 0) for name, (offset, _) in self.entries.items()}

    def _find_weights(self) -> None:
        """Locate the weights of all layers, in order.

        Raises
        ------
        ValueError
            If the file does not fit.
        """
        size, position = self.version.size, 0
        unknown = ""  # a layer with weights of unknown size
        for operator in self._layers:
            kind = ncnn_name(operator.type)
            if not kind and operator.inputs and operator.outputs:
                unknown = unknown or operator.name
            values = {key: parameter.value for key, parameter in operator.params.items()}
            try:
                specs = weight_specs(kind, values)
            except ValueError:  # the layer reports the error
                specs, unknown = [], unknown or operator.name
            for spec in specs:
                slot, position = self._slot_at(position, spec)
                if position > size:
                    if unknown:
                        return
                    raise ValueError(
                        f"layer {operator.name!r} needs {slot.nbytes} bytes for its "
                        f"{spec.name} from byte {slot.offset} on, but the file has {size}; it "
                        "was cut short or belongs to another model"
                    )
                self._slots[f"{operator.name}.{spec.name}"] = slot
        if position < size and unknown:
            self._forget_behind(unknown)
        elif position < size:
            raise ValueError(
                f"the layers need {position} bytes, but the file has {size}; "
                f"{self._why_longer(size - position)}"
            )

    def _why_longer(self, surplus: int) -> str:
        """Say why the file may have more bytes than the layers need."""
        constants = {
            operator.name: slot.nbytes
            for operator in self._layers
            if ncnn_name(operator.type) == "MemoryData"
            and (slot := self._slots[f"{operator.name}.data"]).dtype == "f32"
        }
        if surplus == sum(constants.values()):
            names = list(constants)
        else:
            names = [name for name, nbytes in constants.items() if nbytes == surplus][:1]
        if not names:
            return "it belongs to another model: use the .bin that was exported with the .param"
        return (
            f"the exporter wrote the constant {names[0]!r} with 8 bytes per element, as "
            "float64, but ncnn reads 4, as float32: make the constants of the model float32, "
            "and export it again"
        )

    def _slot_at(self, position: int, spec: WeightSpec) -> tuple[_Slot, int]:
        """Return the position of a weight, and its end."""
        count = math.prod(spec.shape)
        if not spec.tagged:
            nbytes = ITEMSIZES[spec.dtype] * count
            return _Slot(spec.dtype, position, nbytes), position + _aligned(nbytes)
        tag = self._bytes(position, _TAG.size) if position < self.version.size else b""
        position += _TAG.size
        dtype = _DTYPES.get(_TAG.unpack(tag)[0]) if len(tag) == _TAG.size else "f32"
        if dtype is None:
            nbytes = 4 * _TABLE + count
            return _Slot("f32", position, nbytes, is_indexed=True), position + _aligned(nbytes)
        nbytes = ITEMSIZES[dtype] * count
        return _Slot(dtype, position, nbytes), position + _aligned(nbytes)

    def _forget_behind(self, unknown: str) -> None:
        """Drop the positions of weights after one of unknown size."""
        names = [operator.name for operator in self._layers]
        behind = set(names[names.index(unknown) :])
        for name in [name for name in self._slots if name.rpartition(".")[0] in behind]:
            del self._slots[name]


def bind(graph: Graph, archive: WeightArchive | None) -> None:
    """Connect the attributes of a graph to their bytes.

    Parameters
    ----------
    graph : Graph
    archive : WeightArchive or None
        Source of the weights; None for a model without weights, or opened without them.
    """
    needed = any(operator.attrs for operator in graph.operators)
    graph.archive, graph.has_weights = archive, archive is not None or not needed
    if archive is None:
        return
    _, listed = json.loads(archive.directory)
    lost = _LostWeights(archive.path)
    for name, attribute in graph.weights():
        if name in listed:
            attribute.dtype, offset = listed[name]
            attribute.bind(archive, offset)
        else:
            attribute.bind(lost, 0)


class _LostWeights:
    """Weights after one of unknown size."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def view(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:  # noqa: ARG002
        """Raise an error: their positions are unknown."""
        raise ModelFileError(
            self.path,
            "the position of this weight is unknown: a layer above has weights of unknown "
            "size, because of its type or its parameters",
        )


def encode_weight(array: npt.NDArray[np.generic], dtype: str, *, tagged: bool) -> list[bytes]:
    """Encode a weight as in a ``.bin``.

    Parameters
    ----------
    array : ndarray
        C-contiguous.
    dtype : str
        PNNX's name of its dtype: ``f32``, ``f16``, ``bf16`` or ``i8``.
    tagged : bool
        Whether to write a tag before it.

    Returns
    -------
    list of bytes
        Pieces, each a multiple of 4 bytes.
    """
    data = array.tobytes()
    data = data.ljust(_aligned(len(data)), b"\0")
    return [_TAG.pack(_TAGS[dtype]), data] if tagged else [data]


class StoredWeight(Protocol):
    """A weight as `encode_layer` needs it."""

    @property
    def array(self) -> npt.NDArray[Any]:
        """Its numbers, C-contiguous."""
        ...

    @property
    def stored_dtype(self) -> str:
        """PNNX's name of its dtype."""
        ...


def encode_layer(
    kind: str, params: Mapping[str, Value], weights: Mapping[str, StoredWeight]
) -> list[bytes]:
    """Encode the weights of a layer as in a ``.bin``.

    Parameters
    ----------
    kind : str
        ncnn's name of the type.
    params : mapping of str to Value
        By name.
    weights : mapping of str to StoredWeight
        By name.

    Returns
    -------
    list of bytes
        As for `encode_weight`.

    Raises
    ------
    ValueError
        As for `weight_specs`.
    """
    pieces: list[bytes] = []
    for spec in weight_specs(kind, params):
        weight = weights[spec.name]
        pieces += encode_weight(weight.array, weight.stored_dtype, tagged=spec.tagged)
    return pieces


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT
