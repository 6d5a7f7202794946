"""Fused subgraphs: a library computes consecutive operators at once; every operand is kept.

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
    "part_of",
    "supported_parts",
]

_NOTHING: Final = object()


class Strategy(Enum):
    """How a subgraph is computed; what its kernel's name begins with.

    NCHW: by ONNX Runtime, every operand in NCHW. NCHWC: by ONNX Runtime, images in NCHWc, with
    its block of channels innermost. ELEMPACK: by ncnn, which packs channels likewise.
    """

    NCHW = "onnxruntime/nchw"
    NCHWC = "onnxruntime/nchwc"
    ELEMPACK = "ncnn/elempack"


# By the names that kernels may have in dumps, former ones too.
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
        """Say in words what it means."""
        library, images = _DESCRIPTIONS[self.strategy]
        operators = f"operators {self.first} to {self.last} fused"
        return ", ".join(
            filter(None, [library, operators, images, format_count(self.threads, "thread")])
        )

    @classmethod
    def read(cls, name: str) -> SubgraphName | None:
        """Read a kernel's name; None where it is none of a subgraph."""
        found = re.fullmatch(_NAME, name)
        if found is None:
            return None
        threads, first, last = map(int, found.group(2, 3, 4))
        return cls(_STRATEGY_OF[found[1]], threads, first, last)


def is_fused(kernel: str) -> bool:
    """Whether a kernel of this name computes several operators at once."""
    return SubgraphName.read(kernel) is not None


class Role(Enum):
    """How an operator takes part in a subgraph.

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
    """An operator of a subgraph.

    Attributes
    ----------
    operator : RuntimeOperator
    role : Role
    seconds : float
        That it took by itself.
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
    graph: Subgraph,
    operator: RuntimeOperator,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
) -> Part | None:
    """Tell how an operator may take part in a subgraph; None where it cannot.

    Parameters
    ----------
    graph : Subgraph
        The operators that come before it, to which it is added.
    operator : RuntimeOperator
    inputs, outputs : sequence of Value
        As they are without a subgraph.
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


def _written(parts: Iterable[Part], known: Mapping[str, Value]) -> Subgraph:
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
    """Those of the parts that one strategy supports: as many as it can, from the first on.

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
    graph = _written(parts, {name: materialise(values[name]) for name in names})
    if parts:
        announce(parts[0].operator.name, strategy.value)
    foreign = first_unsupported(graph)
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
    """A subgraph lowered for a library: everything but the compiled kernel.

    It holds no operand, so that their memory is free while the compiled kernel is made.

    Parameters
    ----------
    parts : sequence of Part
        Their own seconds say how the time of a run is shared out.
    values : mapping of str to Held
        Inputs and outputs of all of them, as they are without a subgraph.
    threads : int
    strategy : Strategy

    Raises
    ------
    LoweringError
        If it cannot be written.
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
        self._graph = _written(parts, known)

    def compile(self) -> OnnxCompiledKernel | NcnnCompiledSubgraph:
        """Make the compiled kernel.

        Raises
        ------
        LoweringError
            If the library lacks a node, or there are no images to be had in its own layout.
            Other exceptions are the library's.
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
        How many operators it is of, with those that only look at others' elements.
    indices : tuple of int
        Of the operators that it computes.
    expectation : Expectation or None
        Hears what each run takes.

    Raises
    ------
    LoweringError
        If there are no images to be had in NCHWc. Other exceptions are the library's.
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
        """Compute all operators, where their operands wait."""
        # Whoever holds an operand keeps its memory from being used again.
        waiting, self._waiting = self._waiting, []
        if waiting:
            announce(self._first, self.name)
            started = time.perf_counter()
            self._compiled.run(waiting)
            if self.expectation is not None:
                self.expectation.meet(time.perf_counter() - started)
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
            value = self._handed[name] = self._compiled.checked(self._places[name], inputs)
        return (value,)

    def seconds_of(self, index: int, seconds: float) -> float:
        """Share of an operator in the time of the last run.

        By what it took in it, where the library measures that, or else by itself.

        Parameters
        ----------
        index : int
        seconds : float
            That handing out its result took, with the run where it came first.
        """
        if self._fresh:
            self._seconds, self._fresh = seconds, False
            if self._compiled.seconds is not None:
                self._shares = _shares(zip(self.indices, self._compiled.seconds, strict=True))
        return self._seconds * self._shares[index]


def _shares(spent: Iterable[tuple[int, float]]) -> dict[int, float]:
    seconds = dict(spent)
    whole = sum(seconds.values()) or 1.0
    return {index: each / whole for index, each in seconds.items()}


class FusedKernel:
    """Hands out what a subgraph computed, or computes by a kernel of the operator's own.

    Parameters
    ----------
    index : int
        Of the operator.
    make : callable
        Makes the operator's own kernel, when it is needed.

    Attributes
    ----------
    name : str
    subgraph : FusedSubgraph or None
        The one to look at.
    """

    __slots__ = ("_index", "_make", "_own", "_served", "name", "subgraph")

    def __init__(self, index: int, make: Callable[[int], Kernel]) -> None:
        self.name = ""
        self.subgraph: FusedSubgraph | None = None
        self._index, self._make = index, make
        self._own: Kernel | None = None
        self._served = False

    def prepare(self, inputs: Sequence[Held]) -> None:
        """Find out whether the subgraph serves these inputs."""
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
        """Time to be stated for the last call."""
        if self._served and self.subgraph is not None:
            return self.subgraph.seconds_of(self._index, seconds)
        return seconds
