"""The autotuner of fusion: fuses consecutive operators where that is faster.

When a model runs with its second inputs, consecutive operators are timed fused and one by one.
The tuning cache remembers what was faster, and the next session uses it from its first inputs
on. Without a cached result, the first pass tunes each operator's own kernel. Repeating a pass
with the same inputs never changes the kernels.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from engine.backends.autotuner import ColdCache, is_cold
from engine.backends.blas import one_blas_thread
from engine.backends.exclusions import describe_exclusion
from engine.backends.fusion import (
    Draft,
    FusedKernel,
    FusedSubgraph,
    Strategy,
    part_of,
    supported_parts,
)
from engine.backends.heap import release_weights, trim_heap, trim_libraries
from engine.backends.kernel import (
    MOST_COMPILED,
    Kernels,
    NumpyKernel,
    backend_of,
    signature_of,
    try_to_make,
)
from engine.backends.lowering import SpecialNumbersError
from engine.backends.onnx_runtime import OnnxRuntimeBackend
from engine.backends.subgraph import Subgraph
from engine.backends.tuning_cache import SECONDS_OF_WAKING, describe_work
from engine.differences import agrees
from engine.errors import EngineError
from engine.memory_bound import current_room
from engine.threads import thread_count
from engine.values import LazyArray, materialise, materialise_all, value_nbytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.backends.exclusions import Exclusions
    from engine.backends.fusion import Part
    from engine.backends.kernel import Kernel
    from engine.backends.tuning_cache import TuningCache
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Held, Value

__all__ = ["FusingKernels", "activate", "run_one_by_one"]

_FEWEST: Final = 3  # minimum number of operators of a subgraph
_MOST: Final = 256
# A subgraph ends after operators that took this time, because a single step computes all of it.
# The next subgraph may begin there.
_SECONDS: Final = 0.05
_ROUNDS: Final = 6
_FEWEST_ROUNDS: Final = 3
_SECONDS_OF_ROUNDS: Final = 0.2
# What is computed by ncnn must take less by this, where weights come from memory in every
# pass: its layout of them for Winograd's convolutions is up to four times as large, and so it
# takes a third longer while other processes use the memory, where others take a tenth.
_LARGER_WEIGHTS: Final = 1.1
_COPIES: Final = 3  # bytes of all results of a subgraph in a trial
_ONE_BY_ONE: Final = "one by one"
_SHARE_UNITS: Final = 10_000
# Of ONNX Runtime's strategies the first is faster wherever it computes images, so the other is
# tried only without images.
_STRATEGIES: Final = (Strategy.ELEMPACK, Strategy.NCHWC, Strategy.NCHW)


@dataclass(slots=True)
class _Plans:
    """Decisions for inputs of some sizes.

    Attributes
    ----------
    subgraphs : dict of int to FusedSubgraph
        By their first operator.
    decided : set of int
        Operators that belong to a subgraph, or do not begin one.
    unknown : set of int
        Operators to try fused with the second inputs.
    """

    subgraphs: dict[int, FusedSubgraph] = field(default_factory=dict)
    decided: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _TunedFusion:
    """A decision about consecutive operators, as the tuning cache stores it.

    Attributes
    ----------
    strategy : Strategy or None
        None if one by one is faster.
    count : int
        Number of operators.
    shares : tuple of int
        Share of each in the time one by one, in ten thousandths.
    """

    strategy: Strategy | None
    count: int
    shares: tuple[int, ...] = ()

    @override
    def __str__(self) -> str:
        name = _ONE_BY_ONE if self.strategy is None else self.strategy.name
        return f"{name}/{self.count}/{','.join(map(str, self.shares))}"

    @classmethod
    def read(cls, text: str) -> _TunedFusion | None:
        """Parse a cached decision; None if there is none or it is damaged."""
        found = re.fullmatch(r"([\w ]+)/(\d{1,6})/((?:\d{1,6}(?:,|$))*)", text)
        if found is None or not int(found[2]):
            return None
        strategy = Strategy.__members__.get(found[1])
        if strategy is None and found[1] != _ONE_BY_ONE:
            return None
        shares = tuple(int(share) for share in found[3].split(",") if share)
        return cls(strategy, int(found[2]), shares)


class FusingKernels(Kernels):
    """Kernels that measure which operators are faster fused.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
    make : callable
        Makes the kernel of a single operator.
    tuning_cache : TuningCache
        Results of earlier sessions.
    excluded : Exclusions
        All operators of a subgraph have the same excluded libraries, and none of these computes
        it.
    """

    def __init__(
        self,
        operators: Sequence[RuntimeOperator],
        make: Callable[[RuntimeOperator], Kernel],
        tuning_cache: TuningCache,
        excluded: Exclusions,
    ) -> None:
        super().__init__(operators, make)
        self._tuning_cache, self._excluded = tuning_cache, excluded
        self._passes = 0
        self._fusion_allowed = True
        self._of_sizes: dict[object, _Plans] = {}  # by the shapes of the model's inputs
        self._plans: _Plans | None = None  # of this pass, if fusing is allowed
        self._described: dict[int, str] = {}

    @override
    def fed(self, inputs: Iterable[Array]) -> None:
        """Count the passes, and look up the decisions for inputs of these sizes."""
        self._passes += 1
        self._plans = None
        if self._fusion_allowed:
            sizes = signature_of(list(inputs))
            while len(self._of_sizes) >= MOST_COMPILED and sizes not in self._of_sizes:
                del self._of_sizes[next(iter(self._of_sizes))]
            self._plans = self._of_sizes.setdefault(sizes, _Plans())

    @override
    def allow_fusion(self, *, allowed: bool) -> None:
        """Drop the fused subgraphs, or allow them again from the next inputs on."""
        if not allowed and self._fusion_allowed:
            for index in [i for i, k in self.items() if isinstance(k, FusedKernel)]:
                self[index] = self.make_single(index)
            self._of_sizes.clear()
            self._plans = None
        self._fusion_allowed = allowed

    @override
    def approach(self, index: int, values: Mapping[str, Held]) -> None:
        """Prepare the subgraph that begins here, and decide first whether one should."""
        plans = self._plans
        if plans is None:
            return
        subgraph, fresh = plans.subgraphs.get(index), False
        if subgraph is None:
            first = self._passes == 1
            if index in plans.decided or (first and index in plans.unknown):
                return
            subgraph, fresh = self._plan(index, values, plans), True
            if subgraph is None:
                return
            plans.subgraphs[index] = subgraph
        activate(subgraph, subgraph.indices, values, self, self.make_single)
        if fresh:
            self._give_back(subgraph)

    def _give_back(self, subgraph: FusedSubgraph) -> None:
        """Return the memory of kernels that the subgraph has replaced to the system."""
        trim_heap()
        for index in subgraph.indices:
            release_weights(self._operators[index])

    def _plan(
        self, first: int, values: Mapping[str, Held], plans: _Plans
    ) -> FusedSubgraph | None:
        """Make the subgraph that begins at an operator, if it is faster."""
        operator = self._operators[first]
        strategies = self._strategies_for(operator)
        if not (
            strategies and _may_take_part(operator) and OnnxRuntimeBackend().supports(operator)
        ):
            plans.decided.add(first)
            return None
        row = list(takewhile(self._alike(first), self._operators[first : first + _MOST]))
        key = self._key_of(row, values)
        known = _TunedFusion.read(self._tuning_cache.get(key) or "")
        if known is not None and known.count <= len(row):
            subgraph = None
            if known.strategy in strategies:
                subgraph = self._remembered(
                    row[: known.count], values, known.strategy, known.shares
                )
                if subgraph is not None:
                    subgraph.expectation = self._tuning_cache.expect(key)
            if subgraph is not None or known.strategy is None:
                plans.decided.update(range(first, first + known.count))
                return subgraph
        if self._passes == 1:
            plans.unknown.update(range(first, first + len(row)))
            return None
        parts, results = run_one_by_one(row, values, self.__getitem__, _SECONDS)
        results.clear()  # whose memory the kernels take again, as they do in a pass
        subgraph = self._fastest(strategies, parts, values, key)
        taken = len(parts) if subgraph is None else subgraph.length
        plans.decided.update(range(first, first + max(1, taken)))
        return subgraph

    def _strategies_for(self, operator: RuntimeOperator) -> list[Strategy]:
        excluded = self._excluded[operator.name]
        return [
            strategy for strategy in _STRATEGIES if backend_of(strategy.value) not in excluded
        ]

    def _alike(self, first: int) -> Callable[[RuntimeOperator], bool]:
        """Return whether an operator can be in a subgraph with its first operator."""
        excluded = self._excluded[self._operators[first].name]
        return lambda operator: (
            _may_take_part(operator) and self._excluded[operator.name] == excluded
        )

    def _remembered(
        self,
        row: Sequence[RuntimeOperator],
        values: Mapping[str, Held],
        strategy: Strategy,
        shares: Sequence[int],
    ) -> FusedSubgraph | None:
        """Make a cached subgraph from NumPy's results, without trials and single kernels."""

        def kernel_of(index: int) -> Kernel:
            return self.get(index) or _TransientKernel(self._operators[index])

        with one_blas_thread:
            parts, results = run_one_by_one(row, values, kernel_of)
        if len(parts) < len(row):
            return None
        for part, share in zip(parts, shares, strict=False):
            part.seconds = share
        draft = _drafted(parts, {**values, **results}, strategy)
        results.clear()  # frees memory for the subgraph that replaces them
        for operator in row:
            self.pop(operator.index, None)
        trim_heap()
        return _built(draft)

    def _fastest(
        self,
        strategies: Iterable[Strategy],
        parts: Sequence[Part],
        values: Mapping[str, Held],
        key: str,
    ) -> FusedSubgraph | None:
        """The subgraph that saves most of its operators' time; remember it."""
        best: tuple[float, float, float, Strategy, Sequence[Part]] = (
            np.inf,
            np.inf,
            np.inf,
            Strategy.NCHW,
            parts,
        )
        blocked = False
        for strategy in strategies:
            if strategy is Strategy.NCHW and blocked:
                continue
            try:
                found = self._try_strategy(strategy, parts, values)
            except SpecialNumbersError:  # such results do not predict other inputs
                return None
            trim_libraries()  # frees memory for the next
            trim_heap()
            if found is not None:
                blocked |= strategy is Strategy.NCHWC
                share, seconds, some = found
                judged = share * _handicap(strategy, some)
                if judged < best[0]:
                    best = judged, share, seconds, strategy, some
        _, share, seconds, strategy, parts = best
        if share >= 1:
            self._tuning_cache.put(key, str(_TunedFusion(None, max(1, len(parts)))))
            return None
        whole = sum(part.seconds for part in parts)
        shares = tuple(round(_SHARE_UNITS * part.seconds / whole) for part in parts)
        self._tuning_cache.put(key, str(_TunedFusion(strategy, len(parts), shares)), seconds)
        known = {**values, **self._run_each(parts, values, given_out=True)}
        subgraph = _built(_drafted(parts, known, strategy))
        if subgraph is not None:
            subgraph.expectation = self._tuning_cache.expect(key)
        return subgraph

    def _try_strategy(
        self, strategy: Strategy, parts: Sequence[Part], values: Mapping[str, Held]
    ) -> tuple[float, float, Sequence[Part]] | None:
        """Share of the time one by one, infinite if it differs, the time, and of which parts.

        None if there is no such subgraph.
        """
        known = {**values, **self._run_each(parts, values, given_out=True)}
        some = supported_parts(strategy, parts, known)
        if sum(part.given for part in some) < _FEWEST:
            return None
        subgraph = _built(_drafted(some, known, strategy))
        if subgraph is None:
            return None
        right = self._is_right(subgraph, some, known)
        known.clear()  # whose memory the kernels take again, as they do in a pass
        if not right:
            return np.inf, np.inf, some
        return *self._share(subgraph, some, values), some

    def _is_right(
        self,
        subgraph: FusedSubgraph,
        parts: Sequence[Part],
        known: Mapping[str, Held],
    ) -> bool:
        """Return whether a subgraph computes the same results."""
        try:
            return subgraph.expect(known, self.__getitem__) and all(
                agrees((_result(subgraph, part, known),), (materialise(known[part.output]),))
                for part in parts
                if part.given
            )
        except SpecialNumbersError:
            raise
        except Exception:  # noqa: BLE001 - whatever a library dislikes
            return False

    def _share(
        self, subgraph: FusedSubgraph, parts: Sequence[Part], values: Mapping[str, Held]
    ) -> tuple[float, float]:
        """The time of a subgraph, as a share of that of its operators one by one and in s."""
        one_by_one: list[float] = []
        fused: list[float] = []
        cold, cache = is_cold(part.operator for part in parts), ColdCache()
        ended = time.perf_counter() + _SECONDS_OF_ROUNDS
        for _ in range(1 + _ROUNDS):
            if cold:
                cache.drive_out()
            started = time.perf_counter()
            self._run_each(parts, values)
            one_by_one.append(time.perf_counter() - started)
            if cold:
                cache.drive_out()
            started = time.perf_counter()
            subgraph.expect(values, self.__getitem__)
            subgraph.run()
            now = time.perf_counter()
            fused.append(now - started)
            if len(fused) > _FEWEST_ROUNDS and now > ended:
                break
        count = sum(part.given for part in parts)
        # Medians, and not the least times: single kernels are disturbed more often, and that
        # is what a pass meets. The first round is for the memory that libraries take then and
        # keep, a fifth of the time of a subgraph of large images.
        seconds = median(fused[1:])
        return seconds / (median(one_by_one[1:]) + count * SECONDS_OF_WAKING), seconds

    def _run_each(
        self, parts: Sequence[Part], values: Mapping[str, Held], *, given_out: bool = False
    ) -> dict[str, Value]:
        """Compute operators one by one, optionally with results laid out as in a subgraph."""
        results: dict[str, Value] = {}
        for part in parts:
            started = time.perf_counter()
            kernel, inputs = self[part.operator.index], _inputs(part.sources, results, values)
            kernel.prepare(inputs)
            result = materialise(kernel(inputs)[0])
            part.seconds = min(part.seconds, time.perf_counter() - started)
            results[part.output] = _as_given_out(result, inputs) if given_out else result
        return results

    def _key_of(self, row: Sequence[RuntimeOperator], values: Mapping[str, Held]) -> str:
        for operator in row:
            if operator.index not in self._described:
                self._described[operator.index] = describe_work(operator)
        work = [self._described[operator.index] for operator in row]
        arrays = materialise_all(values[o.name] for o in row[0].inputs if o.name in values)
        text = "|".join([*work, repr(signature_of(arrays))])
        text += describe_exclusion(self._excluded[row[0].name])
        return hashlib.sha256(text.encode()).hexdigest()[:24]


class _TransientKernel(NumpyKernel):
    """Runs the reference once, and frees the weights that it prepared."""

    __slots__ = ("_operator",)

    def __init__(self, operator: RuntimeOperator) -> None:
        super().__init__(operator)
        self._operator = operator

    @override
    def __call__(self, inputs: Sequence[Held]) -> tuple[Value, ...]:
        outputs = super().__call__(inputs)
        release_weights(self._operator)
        return outputs


def _handicap(strategy: Strategy, parts: Iterable[Part]) -> float:
    cold = strategy is Strategy.ELEMPACK and is_cold(part.operator for part in parts)
    return _LARGER_WEIGHTS if cold else 1


def _drafted(
    parts: Sequence[Part], known: Mapping[str, Held], strategy: Strategy
) -> Draft | None:
    return try_to_make(partial(Draft, parts, known, thread_count(), strategy))


def _built(draft: Draft | None) -> FusedSubgraph | None:
    return None if draft is None else try_to_make(partial(FusedSubgraph, draft))


def _may_take_part(operator: RuntimeOperator) -> bool:
    return (
        not (operator.is_input or operator.is_output or operator.random)
        and operator.error is None
        and len(operator.outputs) == 1
    )


def run_one_by_one(
    row: Iterable[RuntimeOperator],
    values: Mapping[str, Held],
    kernel_of: Callable[[int], Kernel],
    limit: float = np.inf,
) -> tuple[list[Part], dict[str, Value]]:
    """Compute operators one by one, to find their roles in a subgraph.

    Parameters
    ----------
    row : iterable of RuntimeOperator
    values : mapping of str to Held
        The known operands.
    kernel_of : callable
    limit : float, optional
        Seconds after which to stop.

    Returns
    -------
    parts : list of Part
        The operators that have a role, up to the first that has none.
    results : dict of str to Value
        Their results.
    """
    parts: list[Part] = []
    results: dict[str, Value] = {}
    graph = Subgraph()
    spent, taken = 0.0, 0
    for operator in row:
        names = [operand.name for operand in operator.inputs]
        if spent > limit or not all(n in results or n in values for n in names):
            break
        inputs = _inputs(names, results, values)
        try:
            started = time.perf_counter()
            kernel = kernel_of(operator.index)
            kernel.prepare(inputs)
            outputs = materialise_all(kernel(inputs))
            seconds = time.perf_counter() - started
        except EngineError:  # the session will run into the same error and report it
            break
        outputs = [_as_given_out(value, inputs) for value in outputs]
        part = part_of(graph, operator, inputs, outputs)
        if part is None:
            break
        taken += value_nbytes(outputs[0])
        if taken > current_room().left / _COPIES:
            break
        part.seconds = seconds
        spent += seconds
        parts.append(part)
        results[part.output] = outputs[0]
    return parts, results


def _as_given_out(value: Value, inputs: Iterable[Value]) -> Value:
    """Return a result as a subgraph returns it: C-contiguous unless it is a view of an input.

    NumPy's own results may have another layout, and views of them then differ.
    """
    if not isinstance(value, np.ndarray) or value.flags.c_contiguous:
        return value
    arrays = (each for each in inputs if isinstance(each, np.ndarray))
    if any(np.may_share_memory(value, array) for array in arrays):
        return value
    return np.ascontiguousarray(value)


def activate(
    subgraph: FusedSubgraph,
    indices: Iterable[int],
    values: Mapping[str, Held],
    kernels: dict[int, Kernel],
    own: Callable[[int], Kernel],
) -> None:
    """Attach the operators of a subgraph to it, for the known operands.

    Parameters
    ----------
    subgraph : FusedSubgraph
    indices : iterable of int
        Indices of those operators.
    values : mapping of str to Held
    kernels : dict of int to Kernel
        By index; single kernels are replaced by fused ones.
    own : callable
        Makes an operator's own kernel.
    """
    subgraph.expect(values, kernels.__getitem__)
    for index in indices:
        kernel = kernels[index]
        if not isinstance(kernel, FusedKernel):
            kernel = kernels[index] = FusedKernel(index, own)
        kernel.subgraph = subgraph


def _result(subgraph: FusedSubgraph, part: Part, known: Mapping[str, Held]) -> Value:
    inputs = materialise_all(known[name] for name in part.sources)
    (found,) = subgraph.result(part.operator.index, inputs)
    return found.read() if isinstance(found, LazyArray) else found


def _inputs(
    names: Iterable[str], results: Mapping[str, Value], values: Mapping[str, Held]
) -> list[Value]:
    return [results[n] if n in results else materialise(values[n]) for n in names]
