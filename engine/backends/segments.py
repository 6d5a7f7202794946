"""Segments: operators in a row that a library computes at once, every operand kept.

A session or network for each operator pays for waking threads, and for going over to the
library's own layout of images and back, which among small operators is half of the time. One
for many of them, with every operand among its outputs, pays once: the first operator computes
all, and the others hand out what is there already.

What they hand out is right only for the operands that the first one saw. Each makes sure that
its inputs are those very arrays, and is computed by a kernel of its own where they are not:
after an operand was supplied, say, or where NaN make the library's result another than
PyTorch's.
"""

from __future__ import annotations

import re
import weakref
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from engine.backends.activity import announce
from engine.backends.forms import NoFormError
from engine.backends.kernel import signature_of
from engine.backends.ncnn_segment import NcnnSegmentProgram
from engine.backends.onnx_runtime import OnnxProgram, write_operator
from engine.values import Deferred, address_of, settled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.backends.kernel import Kernel
    from engine.backends.onnx_graph import OnnxGraph
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Held, Value

__all__ = [
    "Draft",
    "Part",
    "Role",
    "Segment",
    "SegmentKernel",
    "SegmentName",
    "Way",
    "computed_together",
    "part_of",
    "parts_for",
]

_NOTHING: Final = object()


class Way(Enum):
    """How a segment is computed; what its kernel's name begins with.

    TOGETHER: by ONNX Runtime, operands in the common order. BLOCKED: by ONNX Runtime, images
    in blocks of channels. PACKED: by ncnn, likewise.
    """

    TOGETHER = "onnxruntime/segment"
    BLOCKED = "onnxruntime/blocked"
    PACKED = "ncnn/segment"


_WAY_NAMES: Final = "|".join(way.value for way in Way)
_NAME: Final = rf"({_WAY_NAMES})-(\d{{1,4}})@(\d{{1,9}})-(\d{{1,9}})"


@dataclass(frozen=True, slots=True)
class SegmentName:
    """Kernel name of a segment's operators, e.g. ``onnxruntime/segment-2@14-37``.

    Attributes
    ----------
    way : Way
    threads : int
    first, last : int
        Indices of operators.
    """

    way: Way
    threads: int
    first: int
    last: int

    @override
    def __str__(self) -> str:
        return f"{self.way.value}-{self.threads}@{self.first}-{self.last}"

    @classmethod
    def read(cls, name: str) -> SegmentName | None:
        """Read a kernel's name; None where it is none of a segment."""
        found = re.fullmatch(_NAME, name)
        if found is None:
            return None
        threads, first, last = map(int, found.group(2, 3, 4))
        return cls(Way(found[1]), threads, first, last)


def computed_together(kernel: str) -> bool:
    """Whether a kernel of this name computes several operators at once."""
    return SegmentName.read(kernel) is not None


class Role(Enum):
    """How an operator takes part in a segment.

    COMPUTED: ONNX Runtime computes it. MOVED: ONNX Runtime moves its elements, and gives it
    out. VIEW: NumPy gives a view of its input; behind it ONNX Runtime reads moved elements.
    RESHAPED: the same, and it is the input in another shape. CONSTANT: it has no input.
    """

    COMPUTED = "computed"
    MOVED = "moved"
    VIEW = "view"
    RESHAPED = "reshaped"
    CONSTANT = "constant"


@dataclass(slots=True)
class Part:
    """An operator of a segment.

    Attributes
    ----------
    operator : RuntimeOperator
    role : Role
    seconds : float
        That it took apart from the others.
    """

    operator: RuntimeOperator
    role: Role
    seconds: float = 0.0

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(operand.name for operand in self.operator.inputs)

    @property
    def output(self) -> str:
        """Name of the output."""
        return self.operator.outputs[0].name

    @property
    def given(self) -> bool:
        """Whether ONNX Runtime gives it out."""
        return self.role in {Role.COMPUTED, Role.MOVED}


def part_of(
    operator: RuntimeOperator, inputs: Sequence[Value], outputs: Sequence[Value]
) -> Part | None:
    """Tell how an operator may take part in a segment; None where it cannot.

    Parameters
    ----------
    operator : RuntimeOperator
    inputs, outputs : sequence of Value
        As they are without a segment.
    """
    from engine.backends.onnx_forms import FORMS
    from engine.backends.onnx_graph import OnnxGraph

    output = outputs[0] if len(outputs) == 1 else None
    if operator.random or not isinstance(output, np.ndarray):
        return None
    if not inputs:
        return Part(operator, Role.CONSTANT)
    first = inputs[0]
    if FORMS.has(operator):
        role = Role.COMPUTED
    elif not isinstance(first, np.ndarray):
        return None
    elif _is_reshaped(output, first):
        return Part(operator, Role.RESHAPED)
    else:
        role = Role.VIEW if np.may_share_memory(output, first) else Role.MOVED
    part = Part(operator, role)
    names = [f"x{index}" for index in range(len(inputs))]
    try:
        _write(OnnxGraph(), part, inputs, names, output)
    except NoFormError:
        return None
    return part


def _write(
    graph: OnnxGraph, part: Part, inputs: Sequence[Value], names: Sequence[str], output: Value
) -> None:
    from engine.backends.onnx_forms import FORMS
    from engine.backends.onnx_moves import MOVES

    forms = FORMS if part.role is Role.COMPUTED else MOVES
    natural = output.shape if isinstance(output, np.ndarray) else None
    write_operator(
        graph, part.operator, inputs, names, part.output, forms,
        natural=natural, out=part.given,
    )  # fmt: skip


def _written(parts: Iterable[Part], known: Mapping[str, Value]) -> OnnxGraph:
    """Operators in a row as a model for ONNX Runtime."""
    from engine.backends.onnx_graph import OnnxGraph

    graph = OnnxGraph()
    for part in parts:
        if part.role is Role.RESHAPED:
            graph.same(part.output, part.sources[0])
        elif part.role is not Role.CONSTANT:
            inputs = [known[name] for name in part.sources]
            _write(graph, part, inputs, part.sources, known[part.output])
    return graph


def parts_for(way: Way, parts: Sequence[Part], values: Mapping[str, Held]) -> Sequence[Part]:
    """Those of the parts that can be computed in one way: as many as can, from the first on.

    Parameters
    ----------
    way : Way
    parts : sequence of Part
    values : mapping of str to Held
        As for a `Draft`.
    """
    if way is not Way.PACKED:
        return parts
    names = {name for part in parts for name in (*part.sources, part.output)}
    graph = _written(parts, {name: settled(values[name]) for name in names})
    if parts:
        announce(parts[0].operator.name, way.value)
    foreign = graph.foreign_to_ncnn()
    count = len(parts)
    if foreign is not None:
        count = next(place for place, part in enumerate(parts) if part.output == foreign)
    while count and not parts[count - 1].given:  # what is only looked at may begin the next
        count -= 1
    return parts[:count]


def _is_reshaped(array: Array, other: Array) -> bool:
    """Whether an array is another one in another shape, and nothing else."""
    return (
        array.flags.c_contiguous
        and other.flags.c_contiguous
        and array.nbytes == other.nbytes
        and array.dtype == other.dtype
        and address_of(array) == address_of(other)
    )


@dataclass(frozen=True, slots=True)
class _View:
    """Where an array lies in another one.

    Attributes
    ----------
    root : str
        Name of the other.
    offset : int
        Bytes between their beginnings.
    shape, strides : tuple of int
    """

    root: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, array: Array, root: str, other: Array) -> _View:
        return cls(root, address_of(array) - address_of(other), array.shape, array.strides)

    def fits(self, array: Array, other: Array) -> bool:
        """Whether an array lies in another one like this."""
        return _View.of(array, self.root, other) == self


def _free(given: Sequence[Part]) -> frozenset[str]:
    """Operands that only operators computed here read, and may have in any order."""
    here = {part.operator.index for part in given}
    return frozenset(
        part.output
        for part in given
        if here.issuperset(c.index for c in part.operator.outputs[0].consumers)
    )


class Draft:
    """Operators in a row, written for a library: everything but the program.

    It holds no operand, so that their memory is free while the program is made.

    Parameters
    ----------
    parts : sequence of Part
        Their seconds apart say how the time of a run is shared out.
    values : mapping of str to Held
        Inputs and outputs of all of them, as they are without a segment.
    threads : int
    way : Way

    Raises
    ------
    NoFormError
        If it cannot be written.
    """

    def __init__(
        self, parts: Sequence[Part], values: Mapping[str, Held], threads: int, way: Way
    ) -> None:
        self.parts, self.threads, self.way = parts, threads, way
        self.constants = {p.output: p.operator.index for p in parts if not p.sources}
        within = {part.output for part in parts} - set(self.constants)
        fed = dict.fromkeys(n for part in parts for n in part.sources if n not in within)
        known = {n: settled(values[n]) for n in (*fed, *within)}
        self.fed = tuple(name for name in fed if isinstance(known[name], np.ndarray))
        self.plain = {name: known[name] for name in fed if name not in self.fed}
        self.views: dict[str, _View] = {}
        for part in parts:
            if part.role in {Role.VIEW, Role.RESHAPED}:
                source = part.sources[0]
                root = self.views[source].root if source in self.views else source
                array, whole = known[part.output], known[root]
                if isinstance(array, np.ndarray) and isinstance(whole, np.ndarray):
                    self.views[part.output] = _View.of(array, root, whole)
        self.signature = signature_of([known[name] for name in self.fed])
        self._graph = _written(parts, known)

    def program(self) -> OnnxProgram | NcnnSegmentProgram:
        """Make the program.

        Raises
        ------
        NoFormError
            If there are no images to be had in blocks. Other exceptions are the library's.
        """
        free = _free([part for part in self.parts if part.given])
        if self.way is Way.PACKED:
            return NcnnSegmentProgram(self._graph.for_ncnn(free), self.fed, self.threads)
        model = self._graph.finish(free if self.way is Way.BLOCKED else None)
        return OnnxProgram(model, self.fed, "all", self.threads)


class Segment:
    """Operators in a row, and the program that computes them.

    Parameters
    ----------
    draft : Draft

    Attributes
    ----------
    name : str
        Of the kernel.
    way : Way
    length : int
        How many operators it is of, with those that only look at others' elements.
    indices : tuple of int
        Of the operators that it computes.

    Raises
    ------
    NoFormError
        If there are no images to be had in blocks. Other exceptions are the library's.
    """

    def __init__(self, draft: Draft) -> None:
        first, last = (draft.parts[place].operator for place in (0, -1))
        self.name = str(SegmentName(draft.way, draft.threads, first.index, last.index))
        self._first = first.name
        announce(self._first, self.name)
        self._program = draft.program()
        self.way, self.length = draft.way, len(draft.parts)
        given = [part for part in draft.parts if part.given]
        self.indices = tuple(part.operator.index for part in given)
        self._sources = {part.operator.index: part.sources for part in given}
        self._places = {part.output: place for place, part in enumerate(given)}
        self._name_of = {part.operator.index: part.output for part in given}
        self._constants, self._fed, self._plain = draft.constants, draft.fed, draft.plain
        self._views, self._signature = draft.views, draft.signature
        self._handed: dict[str, Held] = {}  # by name, of the last run
        self._seen: dict[str, weakref.ref[Array]] = {}
        self._waiting: list[Value] = []
        self._valid = self._fresh = False
        self._seconds = 0.0
        self._shares = _shares((part.operator.index, part.seconds) for part in given)

    def expect(self, values: Mapping[str, Held], kernel_of: Callable[[int], Kernel]) -> bool:
        """Take the operands of the next run.

        Parameters
        ----------
        values : mapping of str to Held
            Those that are known.
        kernel_of : callable
            Gives the kernel of an operator, for those that have no input.

        Returns
        -------
        bool
            Whether they are all there, in the same sizes.
        """
        self._valid, self._waiting, self._seen = False, [], {}
        self._handed.clear()
        waiting: list[Value] = []
        for name in self._fed:
            if name in self._constants:
                waiting.append(settled(kernel_of(self._constants[name])(())[0]))
            elif name in values:
                waiting.append(settled(values[name]))
        if len(waiting) < len(self._fed) or signature_of(waiting) != self._signature:
            return False
        self._waiting = waiting
        self._seen = {
            name: weakref.ref(value)
            for name, value in zip(self._fed, waiting, strict=True)
            if isinstance(value, np.ndarray)
        }
        return True

    def run(self) -> None:
        """Compute all operators, where their operands wait."""
        # Whoever holds an operand keeps its memory from being used again.
        waiting, self._waiting = self._waiting, []
        if waiting:
            announce(self._first, self.name)
            self._program.run(waiting)
            self._valid = self._fresh = True

    def serves(self, index: int, inputs: Sequence[Held]) -> bool:
        """Whether what is, or is going to be computed is right for an operator's inputs."""
        if not (self._valid or self._waiting):
            return False
        for name, value in zip(self._sources[index], inputs, strict=True):
            # Mostly it is what was handed out last, and this is asked at every step.
            last = self._handed.get(name, _NOTHING)
            if last is not value and not self._is_the_same(name, value):
                return False
        return True

    def _is_the_same(self, name: str, value: Held) -> bool:
        if isinstance(value, Deferred):
            return False
        if not isinstance(value, np.ndarray):
            plain = self._plain.get(name, _NOTHING)
            return type(plain) is type(value) and plain == value
        view = self._views.get(name)
        root = name if view is None else view.root
        if root in self._places:
            known = self._program.shown(self._places[root])
        else:
            seen = self._seen.get(root)
            known = None if seen is None else seen()
        if view is None or known is None:
            return known is value
        return view.fits(value, known)

    def result(self, index: int, inputs: Sequence[Held]) -> tuple[Held]:
        """Hand out what an operator gives, computing it first where it waits.

        Raises
        ------
        SpecialNumbersError
            If the reference would give something else.
        """
        self.run()
        name = self._name_of[index]
        value = self._handed.get(name)
        if value is None:
            value = self._handed[name] = self._program.checked(self._places[name], inputs)
        return (value,)

    def seconds_of(self, index: int, seconds: float) -> float:
        """Share of an operator in the time of the last run.

        By what it took in it, where the library tells, or else apart.

        Parameters
        ----------
        index : int
        seconds : float
            That handing out its result took, with the run where it came first.
        """
        if self._fresh:
            self._seconds, self._fresh = seconds, False
            if self._program.seconds is not None:
                self._shares = _shares(zip(self.indices, self._program.seconds, strict=True))
        return self._seconds * self._shares[index]


def _shares(spent: Iterable[tuple[int, float]]) -> dict[int, float]:
    seconds = dict(spent)
    whole = sum(seconds.values()) or 1.0
    return {index: each / whole for index, each in seconds.items()}


class SegmentKernel:
    """Hands out what a segment computed, or computes by a kernel of the operator's own.

    Parameters
    ----------
    index : int
        Of the operator.
    make : callable
        Makes the operator's own kernel, when it is needed.

    Attributes
    ----------
    name : str
    segment : Segment or None
        The one to look at.
    """

    __slots__ = ("_index", "_make", "_own", "_served", "name", "segment")

    def __init__(self, index: int, make: Callable[[int], Kernel]) -> None:
        self.name = ""
        self.segment: Segment | None = None
        self._index, self._make = index, make
        self._own: Kernel | None = None
        self._served = False

    def prepare(self, inputs: Sequence[Held]) -> None:
        """Find out whether the segment serves these inputs."""
        segment = self.segment
        self._served = segment is not None and segment.serves(self._index, inputs)
        if self._served and segment is not None:
            self.name = segment.name
        else:
            self._prepare_own(inputs)

    def _prepare_own(self, inputs: Sequence[Held]) -> Kernel:
        if self._own is None:
            self._own = self._make(self._index)
        self._own.prepare(inputs)
        self.name = self._own.name
        return self._own

    def __call__(self, inputs: Sequence[Held]) -> tuple[Held, ...]:
        """Compute the outputs."""
        if self._served and self.segment is not None:
            try:
                return self.segment.result(self._index, inputs)
            except Exception:  # noqa: BLE001 - whatever a library raises
                self._served = False
        own = self._prepare_own(inputs)
        outputs = own(inputs)
        self.name = own.name
        return outputs

    def spent(self, seconds: float) -> float:
        """Time to be stated for the last call."""
        if self._served and self.segment is not None:
            return self.segment.seconds_of(self._index, seconds)
        return seconds
