"""Fused subgraphs: a library computes consecutive operators in one call, keeping every operand.

A session or network per operator pays for waking threads and for converting images to the
library's layout and back, which is half of the time for small operators. One for many operators
pays once and has every operand among its outputs. The first operator computes all of them, and
the others return their results.

These results are valid only for the operands that the first operator saw. Each operator checks
that its inputs are those arrays. If not, as after an override, it uses its own kernel. It also
does so where NaN makes the library's result differ from PyTorch's.
"""

from __future__ import annotations

import re
import time
import weakref
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from engine.backends.kernel import signature_of
from engine.backends.lowering import LoweringError
from engine.backends.ncnn_subgraph import NcnnCompiledSubgraph
from engine.backends.onnx_runtime import OnnxCompiledKernel
from engine.backends.subgraph import Subgraph, lower_operator
from engine.runtime.activity import announce
from engine.text import format_count
from engine.values import LazyArray, address_of, materialise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.backends.kernel import Kernel
    from engine.backends.tuning_cache import Expectation
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Held, Value

__all__ = [
    "Draft",
    "FusedKernel",
    "FusedSubgraph",
    "Part",
    "Role",
    "Strategy",
    "SubgraphName",
    "is_fused",
    "lay_out_as_fused",
    "part_of",
    "supported_parts",
]

_NOTHING: Final = object()


class Strategy(Enum):
    """How a subgraph is computed; the prefix of its kernel's name.

    NCHW: by ONNX Runtime, every operand in NCHW. NCHWC: by ONNX Runtime, images in NCHWc, with
    its block of channels innermost. ELEMPACK: by ncnn, which packs channels likewise.
    """

    NCHW = "onnxruntime/nchw"
    NCHWC = "onnxruntime/nchwc"
    ELEMPACK = "ncnn/elempack"


# Strategies by their name in dumps, including former names.
_STRATEGY_OF: Final = {
    **{strategy.value: strategy for strategy in Strategy},
    "onnxruntime/segment": Strategy.NCHW,
    "onnxruntime/blocked": Strategy.NCHWC,
    "ncnn/segment": Strategy.ELEMPACK,
}
_NAME: Final = rf"({'|'.join(_STRATEGY_OF)})-(\d{{1,4}})@(\d{{1,9}})-(\d{{1,9}})"
_DESCRIPTIONS: Final = {
    Strategy.NCHW: ("ONNX Runtime", ""),
    Strategy.NCHWC: ("ONNX Runtime", "images in NCHWc"),
    Strategy.ELEMPACK: ("ncnn", ""),
}


@dataclass(frozen=True, slots=True)
class SubgraphName:
    """Kernel name of the operators of a subgraph, e.g. ``onnxruntime/nchwc-2@14-37``.

    Attributes
    ----------
    strategy : Strategy
    threads : int
    first, last : int
        Indices of operators.
    """

    strategy: Strategy
    threads: int
    first: int
    last: int

    @override
    def __str__(self) -> str:
        return f"{self.strategy.value}-{self.threads}@{self.first}-{self.last}"

    @property
    def description(self) -> str:
        """Describe the kernel."""
        library, images = _DESCRIPTIONS[self.strategy]
        operators = f"operators {self.first} to {self.last} fused"
        return ", ".join(
            filter(None, [library, operators, images, format_count(self.threads, "thread")])
        )

    @classmethod
    def read(cls, name: str) -> SubgraphName | None:
        """Parse a kernel's name; None if it is not a subgraph's."""
        found = re.fullmatch(_NAME, name)
        if found is None:
            return None
        threads, first, last = map(int, found.group(2, 3, 4))
        return cls(_STRATEGY_OF[found[1]], threads, first, last)


def is_fused(kernel: str) -> bool:
    """Return whether a kernel of this name computes several operators at once."""
    return SubgraphName.read(kernel) is not None


class Role(Enum):
    """The role of an operator in a subgraph.

    COMPUTED: the library computes it. MOVED: the library moves its elements and returns the
    result. VIEW: NumPy returns a view of its input; downstream the library reads moved
    elements. RESHAPED: the same, and the view is the input in another shape. CONSTANT: it has
    no input.
    """

    COMPUTED = "computed"
    MOVED = "moved"
    VIEW = "view"
    RESHAPED = "reshaped"
    CONSTANT = "constant"


@dataclass(slots=True)
class Part:
    """An operator of a subgraph.

    Attributes
    ----------
    operator : RuntimeOperator
    role : Role
    seconds : float
        Time that it took alone.
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
        """Whether the library returns its output."""
        return self.role in {Role.COMPUTED, Role.MOVED}


def part_of(
    graph: Subgraph,
    operator: RuntimeOperator,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
) -> Part | None:
    """Return the role that an operator can have in a subgraph; None for no role.

    Parameters
    ----------
    graph : Subgraph
        The operators that come before it, to which it is added.
    operator : RuntimeOperator
    inputs, outputs : sequence of Value
        Its values without a subgraph.
    """
    from engine.backends.operator_lowerings import LOWERINGS

    output = outputs[0] if len(outputs) == 1 else None
    if operator.random or not isinstance(output, np.ndarray):
        return None
    if not inputs:
        return Part(operator, Role.CONSTANT)
    first = inputs[0]
    if LOWERINGS.has(operator):
        role = Role.COMPUTED
    elif not isinstance(first, np.ndarray):
        return None
    elif _is_reshaped(output, first):
        role = Role.RESHAPED
    else:
        role = Role.VIEW if np.may_share_memory(output, first) else Role.MOVED
    part = Part(operator, role)
    try:
        _write(graph, part, inputs, output)
    except LoweringError:
        return None
    return part


def _write(graph: Subgraph, part: Part, inputs: Sequence[Value], output: Value) -> None:
    if part.role is Role.RESHAPED:
        graph.alias(part.output, part.sources[0])
        return
    from engine.backends.move_lowerings import MOVE_LOWERINGS
    from engine.backends.operator_lowerings import LOWERINGS

    lowerings = LOWERINGS if part.role is Role.COMPUTED else MOVE_LOWERINGS
    natural = output.shape if isinstance(output, np.ndarray) else None
    lower_operator(
        graph, part.operator, inputs, part.sources, part.output, lowerings,
        natural=natural, out=part.given,
    )  # fmt: skip


def _lower_parts(parts: Iterable[Part], known: Mapping[str, Value]) -> Subgraph:
    """Lower consecutive operators."""
    graph = Subgraph()
    for part in parts:
        if part.role is not Role.CONSTANT:
            inputs = [known[name] for name in part.sources]
            _write(graph, part, inputs, known[part.output])
    return graph


def supported_parts(
    strategy: Strategy, parts: Sequence[Part], values: Mapping[str, Held]
) -> Sequence[Part]:
    """Return the first parts that a strategy supports, as many as possible.

    Parameters
    ----------
    strategy : Strategy
    parts : sequence of Part
    values : mapping of str to Held
        As for a `Draft`.
    """
    if strategy is not Strategy.ELEMPACK:
        return parts
    from engine.backends.ncnn_lowering import first_unsupported

    names = {name for part in parts for name in (*part.sources, part.output)}
    graph = _lower_parts(parts, {name: materialise(values[name]) for name in names})
    if parts:
        announce(parts[0].operator.name, strategy.value)
    foreign = first_unsupported(graph)
    count = len(parts)
    if foreign is not None:
        count = next(place for place, part in enumerate(parts) if part.output == foreign)
    while count and not parts[count - 1].given:  # views may begin the next subgraph
        count -= 1
    return parts[:count]


def lay_out_as_fused(value: Value, inputs: Iterable[Value]) -> Value:
    """Return a result as a subgraph returns it: C-contiguous unless it is a view of an input.

    NumPy's own results may have another layout, and views of them then differ.
    """
    if not isinstance(value, np.ndarray) or value.flags.c_contiguous:
        return value
    arrays = (each for each in inputs if isinstance(each, np.ndarray))
    if any(np.may_share_memory(value, array) for array in arrays):
        return value
    return np.ascontiguousarray(value)


def _is_reshaped(array: Array, other: Array) -> bool:
    """Return whether an array is only a reshaped view of another one."""
    return (
        array.flags.c_contiguous
        and other.flags.c_contiguous
        and array.nbytes == other.nbytes
        and array.dtype == other.dtype
        and address_of(array) == address_of(other)
    )


@dataclass(frozen=True, slots=True)
class _View:
    """Position of an array in the memory of another one.

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
        """Return whether an array has this position in another one."""
        return _View.of(array, self.root, other) == self


def _free(given: Sequence[Part]) -> frozenset[str]:
    """Return the operands that only the subgraph reads; they may have any layout."""
    here = {part.operator.index for part in given}
    return frozenset(
        part.output
        for part in given
        if here.issuperset(c.index for c in part.operator.outputs[0].consumers)
    )


class Draft:
    """A subgraph lowered for a library, not compiled yet.

    It holds no operand, so their memory is free during compilation.

    Parameters
    ----------
    parts : sequence of Part
        Their times divide the time of a run among the operators.
    values : mapping of str to Held
        Inputs and outputs of all parts, as computed one by one.
    threads : int
    strategy : Strategy

    Raises
    ------
    LoweringError
        If it cannot be lowered.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        values: Mapping[str, Held],
        threads: int,
        strategy: Strategy,
    ) -> None:
        self.parts, self.threads, self.strategy = parts, threads, strategy
        self.constants = {p.output: p.operator.index for p in parts if not p.sources}
        within = {part.output for part in parts} - set(self.constants)
        fed = dict.fromkeys(n for part in parts for n in part.sources if n not in within)
        known = {n: materialise(values[n]) for n in (*fed, *within)}
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
        self._graph = _lower_parts(parts, known)

    def compile(self) -> OnnxCompiledKernel | NcnnCompiledSubgraph:
        """Compile the kernel.

        Raises
        ------
        LoweringError
            If the library lacks a node, or no image can be in its own layout. The library may
            raise other exceptions.
        """
        from engine.backends.ncnn_lowering import lower_to_ncnn
        from engine.backends.onnx_lowering import lower_to_onnx

        free = _free([part for part in self.parts if part.given])
        if self.strategy is Strategy.ELEMPACK:
            return NcnnCompiledSubgraph(
                lower_to_ncnn(self._graph, free), self.fed, self.threads
            )
        model = lower_to_onnx(self._graph, free if self.strategy is Strategy.NCHWC else None)
        return OnnxCompiledKernel(model, self.fed, "all", self.threads)


class FusedSubgraph:
    """A subgraph, and the compiled kernel that computes it.

    Parameters
    ----------
    draft : Draft

    Attributes
    ----------
    name : str
        Of the kernel.
    strategy : Strategy
    length : int
        Number of its operators, including views.
    indices : tuple of int
        Indices of the operators that it computes.
    expectation : Expectation or None
        Gets the time of each run.

    Raises
    ------
    LoweringError
        If no image can be in NCHWc. The library may raise other exceptions.
    """

    def __init__(self, draft: Draft) -> None:
        first, last = (draft.parts[place].operator for place in (0, -1))
        self.name = str(SubgraphName(draft.strategy, draft.threads, first.index, last.index))
        self._first = first.name
        announce(self._first, self.name)
        self._compiled = draft.compile()
        self.expectation: Expectation | None = None
        self.strategy, self.length = draft.strategy, len(draft.parts)
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
        self._shares = _compute_shares((part.operator.index, part.seconds) for part in given)

    def expect(self, values: Mapping[str, Held], kernel_of: Callable[[int], Kernel]) -> bool:
        """Set the operands of the next run.

        Parameters
        ----------
        values : mapping of str to Held
            The known operands.
        kernel_of : callable
            Returns the kernel of an operator, for operators without an input.

        Returns
        -------
        bool
            Whether all operands are known, and have the sizes for which it was compiled.
        """
        self._valid, self._waiting, self._seen = False, [], {}
        self._handed.clear()
        waiting: list[Value] = []
        for name in self._fed:
            if name in self._constants:
                waiting.append(materialise(kernel_of(self._constants[name])(())[0]))
            elif name in values:
                waiting.append(materialise(values[name]))
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
        """Compute all operators, if operands were set."""
        # A reference to an operand would prevent reuse of its memory.
        waiting, self._waiting = self._waiting, []
        if waiting:
            announce(self._first, self.name)
            started = time.perf_counter()
            self._compiled.run(waiting)
            if self.expectation is not None:
                self.expectation.meet(time.perf_counter() - started)
            self._valid = self._fresh = True

    def serves(self, index: int, inputs: Sequence[Held]) -> bool:
        """Return whether the current or pending results are valid for an operator's inputs."""
        if not (self._valid or self._waiting):
            return False
        for name, value in zip(self._sources[index], inputs, strict=True):
            # Usually these are the last returned arrays; this runs at every step.
            last = self._handed.get(name, _NOTHING)
            if last is not value and not self._is_the_same(name, value):
                return False
        return True

    def _is_the_same(self, name: str, value: Held) -> bool:
        if isinstance(value, LazyArray):
            return False
        if not isinstance(value, np.ndarray):
            plain = self._plain.get(name, _NOTHING)
            return type(plain) is type(value) and plain == value
        view = self._views.get(name)
        root = name if view is None else view.root
        if root in self._places:
            known = self._compiled.shown(self._places[root])
        else:
            seen = self._seen.get(root)
            known = None if seen is None else seen()
        if view is None or known is None:
            return known is value
        return view.fits(value, known)

    def result(self, index: int, inputs: Sequence[Held]) -> tuple[Held]:
        """Return the outputs of an operator, computing the subgraph first if necessary.

        Raises
        ------
        SpecialNumbersError
            If the reference would give another result.
        """
        self.run()
        name = self._name_of[index]
        value = self._handed.get(name)
        if value is None:
            value = self._handed[name] = self._compiled.checked(self._places[name], inputs)
        return (value,)

    def seconds_of(self, index: int, seconds: float) -> float:
        """Return the share of an operator in the time of the last run.

        The share is proportional to the operator's time in the run if the library measures it,
        else to its time alone.

        Parameters
        ----------
        index : int
        seconds : float
            Time to return its result; for the first operator it includes the run.
        """
        if self._fresh:
            self._seconds, self._fresh = seconds, False
            if self._compiled.seconds is not None:
                self._shares = _compute_shares(
                    zip(self.indices, self._compiled.seconds, strict=True)
                )
        return self._seconds * self._shares[index]


def _compute_shares(spent: Iterable[tuple[int, float]]) -> dict[int, float]:
    seconds = dict(spent)
    whole = sum(seconds.values()) or 1.0
    return {index: each / whole for index, each in seconds.items()}


class FusedKernel:
    """Returns the result of a subgraph, or computes with the operator's own kernel.

    Parameters
    ----------
    index : int
        Of the operator.
    make : callable
        Makes the operator's own kernel, on first use.

    Attributes
    ----------
    name : str
    subgraph : FusedSubgraph or None
        The subgraph that may have the result.
    """

    __slots__ = ("_index", "_make", "_own", "_served", "name", "subgraph")

    def __init__(self, index: int, make: Callable[[int], Kernel]) -> None:
        self.name = ""
        self.subgraph: FusedSubgraph | None = None
        self._index, self._make = index, make
        self._own: Kernel | None = None
        self._served = False

    def prepare(self, inputs: Sequence[Held]) -> None:
        """Check whether the subgraph has the result for these inputs."""
        subgraph = self.subgraph
        self._served = subgraph is not None and subgraph.serves(self._index, inputs)
        if self._served and subgraph is not None:
            self.name = subgraph.name
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
        if self._served and self.subgraph is not None:
            try:
                return self.subgraph.result(self._index, inputs)
            except Exception:  # noqa: BLE001 - whatever a library raises
                self._served = False
        own = self._prepare_own(inputs)
        outputs = own(inputs)
        self.name = own.name
        return outputs

    def spent(self, seconds: float) -> float:
        """Return the time to report for the last call."""
        if self._served and self.subgraph is not None:
            return self.subgraph.seconds_of(self._index, seconds)
        return seconds
