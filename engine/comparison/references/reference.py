"""The parts of a reference, whatever it was read from."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from engine.comparison.half_rounding import round_as_pnnx
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.values import Array

    Progress = Callable[[int, int], None]

__all__ = [
    "Reference",
    "ReferenceOperator",
    "ReferenceTensor",
    "WeightHash",
    "hash_weight",
    "is_same_weight",
]

_LOOKED_AT: Final = 64  # elements that tell most tensors from integers
_RESIDENT: Final = 256 << 20  # bytes of tensors that stay loaded for their consumers


class WeightHash(Protocol):
    """Identifies a weight without its elements.

    Attributes
    ----------
    size : int
        Number of elements; -1 if unknown.
    float32, float16 : str
        SHA-256 of the elements as float32, and rounded to float16; C order and little-endian.
        The shape does not count.
    pnnx : str
        SHA-256 of the elements as pnnx rounds them to float16: halves away from 0, and numbers
        below 2⁻¹⁴ to 0. ``""`` where it is unknown.
    is_half : bool
        Whether float16 holds all elements; False where it is unknown.
    """

    @property
    def size(self) -> int: ...  # noqa: D102 - above

    @property
    def float32(self) -> str: ...  # noqa: D102

    @property
    def float16(self) -> str: ...  # noqa: D102

    @property
    def pnnx(self) -> str: ...  # noqa: D102

    @property
    def is_half(self) -> bool: ...  # noqa: D102


class _ArrayHash:
    """Hashes of an array, computed on first use."""

    def __init__(self, array: Array) -> None:
        self._array = array

    @property
    def size(self) -> int:
        return self._array.size

    @cached_property
    def float32(self) -> str:
        return _digest(self._exact())

    @cached_property
    def float16(self) -> str:
        with np.errstate(over="ignore"):
            return _digest(self._exact().astype("<f2"))

    @cached_property
    def pnnx(self) -> str:
        return _digest(round_as_pnnx(self._exact()))

    @cached_property
    def is_half(self) -> bool:
        exact = self._exact()
        with np.errstate(over="ignore"):
            return bool((exact.astype("<f2") == exact).all())

    def _exact(self) -> Array:
        return np.ascontiguousarray(self._array, dtype="<f4").reshape(-1)


def _digest(array: Array) -> str:
    return hashlib.sha256(array.view(np.uint8).data).hexdigest()


def is_same_weight(ours: WeightHash, theirs: WeightHash) -> bool:
    """Whether two weights may be the same, ours perhaps rounded to float16.

    An older recording does not tell how pnnx rounds its weights.
    """
    if ours.float32 == theirs.float32:
        return True
    return ours.is_half and (not theirs.pnnx or ours.float16 in {theirs.float16, theirs.pnnx})


def hash_weight(array: Array) -> WeightHash:
    """Hash a weight; each hash is computed when it is first looked at.

    Parameters
    ----------
    array : ndarray of any shape, numbers of any dtype
        Not copied if it is float32 and in C order.
    """
    return _ArrayHash(array)


def _as_integers(array: Array) -> Array:
    """Read the bits of float32 as int32, if all elements are subnormal, but not all zero.

    ncnn has float32 alone, and keeps indices so; no result consists of subnormal numbers.
    """
    if array.dtype != np.float32 or not array.size:
        return array
    flat = array.reshape(-1) if array.flags.c_contiguous else array.ravel()
    least = np.finfo(np.float32).smallest_normal
    some = flat[:: -(-flat.size // _LOOKED_AT)]
    if not (np.abs(some) < least).all() or not (np.abs(flat) < least).all() or not flat.any():
        return array
    return np.ascontiguousarray(array).view(np.int32)


@dataclass(frozen=True, slots=True)
class ReferenceTensor:
    """One tensor of a reference.

    Attributes
    ----------
    key : str
        Unique in the reference.
    load : callable
        Returns the elements; raises `EngineError` if they cannot be read.
    names : tuple of str
        Other names, such as the path of the module whose output it is.
    operator : str
        Name of its producer; ``""`` if the reference does not say.
    type : str
        Type of its producer; ``""`` if the reference does not say.
    role : {"", "input", "constant"}
    quick : bool
        Whether `load` only copies, so that to do it again is quicker than to keep the elements:
        fresh memory costs more than reading a file that the system has in its cache.
    describe : callable or None
        Returns shape and dtype without the elements, which can be read then; raises as `load`.
        None if nothing but `load` tells.
    """

    key: str
    load: Callable[[], Array] = field(repr=False)
    names: tuple[str, ...] = ()
    operator: str = ""
    type: str = ""
    role: str = ""
    quick: bool = False
    describe: Callable[[], ArrayMetadata] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ReferenceOperator:
    """One call of the reference.

    Attributes
    ----------
    name, type : str
    inputs, outputs : tuple of str
        Keys of tensors.
    weights : callable
        Returns the hash of each weight by name.
    arrays : callable
        Returns the weights themselves by name, if the reference has them.
    """

    name: str
    type: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    weights: Callable[[], Mapping[str, WeightHash]] = field(default=dict, repr=False)
    arrays: Callable[[], Mapping[str, Array]] = field(default=dict, repr=False)


class Reference:
    """The tensors of another run.

    Parameters
    ----------
    title : str
        Where it comes from, for messages and for corrections by hand.
    tensors : sequence of ReferenceTensor
        In the order in which they were computed.
    operators : sequence of ReferenceOperator
        In order; may be empty.
    inputs, outputs : sequence of str
        Keys of the model's inputs and outputs; empty where they are unknown.
    ordered : bool
        Whether the order of `tensors` is that of the run.
    again : callable, optional
        Computes it for other inputs of the same shapes; None if nothing can. Takes a function
        like `progress` of `engine.compare`, or None; raises `EngineError` if the model does not
        take such inputs, or there is no room for them.
    failure : str
        Which operator its run could not compute first, and why; ``""`` if there is none, or it
        is unknown.

    Attributes
    ----------
    title, tensors, operators, inputs, outputs, ordered, again, failure
    """

    def __init__(
        self,
        title: str,
        tensors: Sequence[ReferenceTensor],
        operators: Sequence[ReferenceOperator] = (),
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        *,
        ordered: bool = True,
        again: Callable[[Progress | None], Reference] | None = None,
        failure: str = "",
    ) -> None:
        self.title = title
        self.tensors, self.operators = tuple(tensors), tuple(operators)
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.ordered, self.again, self.failure = ordered, again, failure
        self._loaded: OrderedDict[str, Array] = OrderedDict()
        self._nbytes = 0

    @cached_property
    def by_key(self) -> Mapping[str, ReferenceTensor]:
        """Tensors by key."""
        return {tensor.key: tensor for tensor in self.tensors}

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Index of each tensor in the order."""
        return {tensor.key: index for index, tensor in enumerate(self.tensors)}

    def array(self, key: str) -> Array:
        """Return the elements of a tensor, read-only.

        The last ones stay loaded. Not thread-safe. Integers that ncnn keeps as the bits of
        float32 are integers.

        Raises
        ------
        KeyError
            If there is no such tensor.
        EngineError
            If it cannot be read.
        """
        if key in self._loaded:
            self._loaded.move_to_end(key)
            return self._loaded[key]
        array = self._load(self.by_key[key])
        self._loaded[key] = array
        self._nbytes += array.nbytes
        while self._nbytes > _RESIDENT and len(self._loaded) > 1:
            self._nbytes -= self._loaded.popitem(last=False)[1].nbytes
        return array

    def read(self, key: str) -> Array:
        """Return the elements of a tensor for one look, as `array` does.

        They do not stay loaded if they are quick to load again.
        """
        tensor = self.by_key[key]
        return (
            self.array(key) if key in self._loaded or not tensor.quick else self._load(tensor)
        )

    def describe(self, key: str) -> ArrayMetadata:
        """Return shape and dtype of a tensor, without its elements where the file tells.

        Integers that ncnn keeps as float32 may count as float32. Raises as `array`.
        """
        describe = self.by_key[key].describe
        if describe is not None:
            return describe()
        array = self.read(key)
        return ArrayMetadata(array.shape, array.dtype)

    @staticmethod
    def _load(tensor: ReferenceTensor) -> Array:
        array = _as_integers(np.asarray(tensor.load()))
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        return array

    @cached_property
    def consumers(self) -> Mapping[str, tuple[ReferenceOperator, ...]]:
        """Operators that read a tensor, by its key."""
        found: dict[str, list[ReferenceOperator]] = {}
        for operator in self.operators:
            for key in dict.fromkeys(operator.inputs):
                found.setdefault(key, []).append(operator)
        return {key: tuple(operators) for key, operators in found.items()}
