"""Kernels that fuse consecutive operators where that is faster.

A pass tries nothing. It uses the decisions in the tuning cache, and rules choose for the other
operators. After a pass `FusingKernels.tune` tries the alternatives, and the next inputs are
computed by the fastest. Repeating a pass with the same inputs never changes the kernels.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from engine.backends.estimates import estimate_making_seconds, estimate_stated
from engine.backends.exclusions import describe_exclusion
from engine.backends.fusion import FusedKernel, Strategy, supported_parts
from engine.backends.fusion_autotuner import (
    FusionTrial,
    activate,
    make_subgraph,
    run_one_by_one,
)
from engine.backends.heap import release_weights, trim_heap
from engine.backends.kernel import (
    MOST_COMPILED,
    Kernels,
    NumpyKernel,
    SpecializedKernel,
    backend_of,
    signature_of,
)
from engine.backends.kernel_rules import rank_strategies
from engine.backends.lowering import SpecialNumbersError
from engine.backends.onnx_runtime import OnnxRuntimeBackend
from engine.backends.shape_inference import infer_parts
from engine.backends.tuning_cache import describe_work
from engine.errors import EngineError
from engine.values import materialise, materialise_all

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from engine.backends.exclusions import Exclusions
    from engine.backends.fusion import FusedSubgraph, Part
    from engine.backends.fusion_autotuner import Fastest
    from engine.backends.kernel import CompiledKernel, Kernel
    from engine.backends.tuning_cache import TuningCache
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Held, Value

    _TuneSingle = Callable[
        [RuntimeOperator, Sequence[Value]], Generator[None, None, tuple[str, CompiledKernel]]
    ]

__all__ = ["FusingKernels"]

_FEWEST: Final = 3  # minimum number of operators of a subgraph
_MOST: Final = 256
# A subgraph ends after operators that took this time, because a single step computes all of it.
# The next subgraph may begin there.
_SECONDS: Final = 0.05
# Most bytes of weights of subgraphs that wait for the next inputs. Further subgraphs are
# dropped and made again from the tuning cache, because the next inputs may never come.
_MOST_WAITING: Final = 256 << 20
# After a second input more are expected: a subgraph must pay for itself within this many
# passes.
_PASSES: Final = 8
_ONE_BY_ONE: Final = "one by one"
_SHARE_UNITS: Final = 10_000
_STRATEGIES: Final = (Strategy.ELEMPACK, Strategy.NCHWC, Strategy.NCHW)


@dataclass(slots=True)
class _Tuned:
    """The result of trials of consecutive operators, used for the next inputs.

    Attributes
    ----------
    first, count : int
        Index of the first operator, and their number.
    subgraph : FusedSubgraph or None
        None if one by one is faster.
    kernels : dict of int to Kernel
        Kernels of operators that are not fused, by index.
    dropped : bool
        Whether the subgraph is to be made again.
    """

    first: int
    count: int
    subgraph: FusedSubgraph | None
    kernels: dict[int, Kernel]
    dropped: bool = False


@dataclass(slots=True)
class _Plans:
    """Decisions for inputs of certain sizes.

    Attributes
    ----------
    subgraphs : dict of int to FusedSubgraph
        By their first operator.
    decided : set of int
        Operators that belong to a subgraph, or do not begin one.
    tuned : list of _Tuned
        Results of trials in order, until the next inputs.
    reached : int
        Index of the first operator that is not tuned.
    found : dict of Strategy to Fastest or None
        Results of the strategies that were tried from that operator on.
    passes : int
        Number of inputs so far.
    postponed : set of int
        Operators that NumPy computes in the first pass, because a library would take longer to
        make their subgraph.
    waiting : int
        Bytes of weights of tuned subgraphs.
    """

    subgraphs: dict[int, FusedSubgraph] = field(default_factory=dict)
    decided: set[int] = field(default_factory=set)
    tuned: list[_Tuned] = field(default_factory=list)
    reached: int = 0
    found: dict[Strategy, Fastest | None] = field(default_factory=dict)
    passes: int = 0
    postponed: set[int] = field(default_factory=set)
    waiting: int = 0


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
        Share of each operator in the time one by one, in ten thousandths.
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
    """Kernels of single operators and of subgraphs.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
    make : callable
        Makes the kernel of a single operator, which tries nothing.
    tune_single : callable
        Finds the fastest kernel of a single operator; see `Autotuner.tune`.
    tuning_cache : TuningCache
        Results of earlier sessions.
    excluded : Exclusions
        A subgraph contains only operators with the same excluded libraries, and none of these
        libraries computes it.
    fuses : bool
        Whether a library that fuses is installed.
    """

    def __init__(
        self,
        operators: Sequence[RuntimeOperator],
        make: Callable[[RuntimeOperator], Kernel],
        tune_single: _TuneSingle,
        tuning_cache: TuningCache,
        excluded: Exclusions,
        *,
        fuses: bool,
    ) -> None:
        super().__init__(operators, make)
        self._tune_single, self._fuses = tune_single, fuses
        self._tuning_cache, self._excluded = tuning_cache, excluded
        self._fusion_allowed = True
        self._of_sizes: dict[object, _Plans] = {}  # by the shapes of the model's inputs
        self._plans = _Plans()  # of this pass
        self._described: dict[int, str] = {}

    @override
    def fed(self, inputs: Iterable[Array]) -> None:
        """Look up the decisions for inputs of these sizes, and adopt the tuned kernels."""
        sizes = signature_of(list(inputs))
        while len(self._of_sizes) >= MOST_COMPILED and sizes not in self._of_sizes:
            del self._of_sizes[next(iter(self._of_sizes))]
        self._plans = self._of_sizes.setdefault(sizes, _Plans())
        self._plans.passes += 1
        self._resume(self._plans)
        if self._plans.tuned and self._plans.reached == len(self._operators):
            self._adopt(self._plans)

    def _resume(self, plans: _Plans) -> None:
        """Decide anew about operators that were left to NumPy."""
        for index in plans.postponed:
            self.pop(index, None)
        plans.decided -= plans.postponed
        plans.postponed.clear()

    def _adopt(self, plans: _Plans) -> None:
        plans.subgraphs.clear()
        plans.decided.clear()
        for tuned in plans.tuned:
            if not tuned.dropped:
                plans.decided.update(range(tuned.first, tuned.first + tuned.count))
            if tuned.subgraph is not None:
                plans.subgraphs[tuned.first] = tuned.subgraph
            self.update(tuned.kernels)
        plans.tuned, plans.waiting = [], 0

    @override
    def allow_fusion(self, *, allowed: bool) -> None:
        """Drop the fused subgraphs, or allow them again from the next inputs on."""
        if allowed != self._fusion_allowed:
            for index in [i for i, k in self.items() if isinstance(k, FusedKernel)]:
                self[index] = self.make_single(index)
            self._resume(self._plans)
            self._of_sizes.clear()
            self._plans = _Plans(decided=set(range(len(self._operators))))
        self._fusion_allowed = allowed

    @override
    def approach(self, index: int, values: Mapping[str, Held]) -> None:
        """Decide whether a subgraph begins here, and prepare it."""
        plans = self._plans
        subgraph, fresh = plans.subgraphs.get(index), False
        if subgraph is None:
            if index in plans.decided or not self._fusion_allowed:
                return
            subgraph, fresh = self._plan(index, values, plans), True
            if subgraph is None:
                return
            plans.subgraphs[index] = subgraph
        activate(subgraph, subgraph.indices, values, self, self.make_single)
        if fresh:
            self._free_replaced(subgraph.indices)

    def _free_replaced(self, indices: Iterable[int]) -> None:
        """Free the memory of kernels that a subgraph has replaced."""
        trim_heap()
        for index in indices:
            release_weights(self._operators[index])

    def _plan(
        self, first: int, values: Mapping[str, Held], plans: _Plans
    ) -> FusedSubgraph | None:
        """Make the subgraph that begins at an operator, if it is likely to be faster."""
        row = self._find_row(first)
        if not row:
            plans.decided.add(first)
            return None
        count, subgraph = self._find_cached(row, values) or self._choose_by_rules(
            row, values, plans
        )
        plans.decided.update(range(first, first + count))
        return subgraph

    def _find_row(self, first: int) -> list[RuntimeOperator]:
        """Return the operators that a subgraph from one on may fuse; empty for none."""
        operator = self._operators[first]
        if not (
            self._fuses
            and self._fusion_allowed
            and self._list_strategies(operator)
            and _may_take_part(operator)
            and OnnxRuntimeBackend().supports(operator)
        ):
            return []
        excluded = self._excluded[operator.name]
        return list(
            takewhile(
                lambda each: _may_take_part(each) and self._excluded[each.name] == excluded,
                self._operators[first : first + _MOST],
            )
        )

    def _list_strategies(self, operator: RuntimeOperator) -> list[Strategy]:
        excluded = self._excluded[operator.name]
        return [
            strategy for strategy in _STRATEGIES if backend_of(strategy.value) not in excluded
        ]

    def _find_cached(
        self, row: Sequence[RuntimeOperator], values: Mapping[str, Held]
    ) -> tuple[int, FusedSubgraph | None] | None:
        """Return the length and the subgraph of a cached decision; None without one."""
        key = self._make_key(row, values)
        known = _TunedFusion.read(self._tuning_cache.get(key) or "")
        if known is None or known.count > len(row):
            return None
        if known.strategy is None:
            return known.count, None
        if known.strategy not in self._list_strategies(row[0]):
            return None
        found = infer_parts(row[: known.count], values)
        if len(found.parts) < known.count:
            return None
        for part, share in zip(found.parts, known.shares, strict=False):
            part.seconds = share
        subgraph = make_subgraph(found.parts, {**values, **found.stand_ins}, known.strategy)
        if subgraph is None:
            return None
        subgraph.expectation = self._tuning_cache.expect(key)
        return known.count, subgraph

    def _choose_by_rules(
        self, row: Sequence[RuntimeOperator], values: Mapping[str, Held], plans: _Plans
    ) -> tuple[int, FusedSubgraph | None]:
        """Return the number of operators, and the subgraph that is likely to be fastest.

        None if NumPy computes the operators faster than a library makes the subgraph.
        """
        first_pass = plans.passes == 1
        if first_pass:
            # Lowering small operators takes longer than NumPy takes to compute them.
            stated = estimate_stated(row, values, _SECONDS)
            if stated is not None and stated.numpy_seconds <= stated.making_seconds:
                self._compute_by_numpy(row[: stated.length], plans)
                return max(1, stated.length), None
        found = infer_parts(row, values, _SECONDS)
        parts, known = found.parts, {**values, **found.stand_ins}
        operators = [part.operator for part in parts]
        making = estimate_making_seconds(operators, sum(part.given for part in parts))
        if not first_pass:
            making /= _PASSES
        if found.numpy_seconds > making:
            for strategy in rank_strategies(self._list_strategies(row[0]), parts):
                some = supported_parts(strategy, parts, known)
                if sum(part.given for part in some) >= _FEWEST:
                    subgraph = make_subgraph(some, known, strategy)
                    if subgraph is not None:
                        return len(some), subgraph
        elif first_pass:
            self._compute_by_numpy(operators, plans)
        return max(1, len(parts)), None

    def _compute_by_numpy(self, operators: Iterable[RuntimeOperator], plans: _Plans) -> None:
        """Have NumPy compute operators in this pass, and decide again for the next inputs."""
        for operator in operators:
            self[operator.index] = NumpyKernel(operator)
            plans.postponed.add(operator.index)

    # Tuning

    @override
    def tune(self, values: Mapping[str, Held]) -> Iterator[None]:
        """Try kernels with the operands of a pass; the next inputs use the fastest."""
        plans, end = self._plans, len(self._operators)
        while plans.reached < end:
            first = plans.reached
            tuned = yield from self._tune_from(first, values, plans)
            self._limit_waiting(tuned, plans)
            plans.tuned.append(tuned)
            plans.reached = first + tuned.count
            plans.found = {}

    def _limit_waiting(self, tuned: _Tuned, plans: _Plans) -> None:
        if tuned.subgraph in {None, plans.subgraphs.get(tuned.first)}:
            return
        row = self._operators[tuned.first : tuned.first + tuned.count]
        plans.waiting += sum(each.nbytes for o in row for each in o.attributes.values())
        if plans.waiting > _MOST_WAITING:
            tuned.subgraph, tuned.dropped = None, True

    @override
    @property
    def tuned(self) -> int:
        return self._plans.reached

    def _tune_from(
        self, first: int, values: Mapping[str, Held], plans: _Plans
    ) -> Generator[None, None, _Tuned]:
        row = self._find_row(first)
        if not row or not _is_known(row[0], values):
            kernels = yield from self._tune_each([self._operators[first]], values)
            return _Tuned(first, 1, None, kernels)
        known = self._find_cached(row, values)
        if known is not None:
            count, subgraph = known
            some = row[:count] if subgraph is None else []
            kernels = yield from self._tune_each(some, values)
            return _Tuned(first, count, subgraph, kernels)
        kernels = yield from self._tune_each(row, values, _SECONDS)
        try:
            return (yield from self._tune_fusion(row, values, kernels, plans))
        except SpecialNumbersError:  # such results do not predict other inputs
            return _Tuned(first, max(1, len(kernels)), None, kernels)

    def _tune_each(
        self, row: Iterable[RuntimeOperator], values: Mapping[str, Held], limit: float = np.inf
    ) -> Generator[None, None, dict[int, Kernel]]:
        """Measure single kernels, of operators that together take no more than a time limit."""
        kernels: dict[int, Kernel] = {}
        spent = 0.0
        for operator in row:
            if spent > limit or not (_can_fuse(operator) and _is_known(operator, values)):
                break
            kernel = self.make_single(operator.index)
            inputs = [materialise(values[operand.name]) for operand in operator.inputs]
            try:
                if isinstance(kernel, SpecializedKernel):
                    kernel.adopt(inputs, (yield from self._tune_single(operator, inputs)))
                kernel.prepare(inputs)
                started = time.perf_counter()
                if limit < np.inf:
                    kernel(inputs)
                spent += time.perf_counter() - started
            except EngineError:  # the pass has reported the same error
                break
            kernels[operator.index] = kernel
            yield
        return kernels

    def _tune_fusion(
        self,
        row: Sequence[RuntimeOperator],
        values: Mapping[str, Held],
        kernels: dict[int, Kernel],
        plans: _Plans,
    ) -> Generator[None, None, _Tuned]:
        """Try to fuse operators, and remember the faster alternative."""
        first, key = row[0].index, self._make_key(row, values)
        some = row[: len(kernels)]
        parts, results = run_one_by_one(some, values, kernels.__getitem__, _SECONDS)
        results.clear()  # so that kernels reuse its memory, as in a pass
        trial = FusionTrial(kernels, values, plans.found)
        found = yield from trial.fastest(self._list_strategies(row[0]), parts, _FEWEST)
        self.wrong += [
            present.name
            for place, present in plans.subgraphs.items()
            if present.strategy in trial.wrong
            and place < first + len(parts)
            and first < place + present.length
        ]
        count, subgraph = len(found.parts), None
        if found.share < 1:
            decision = _TunedFusion(found.strategy, count, _compute_shares(found.parts))
            self._tuning_cache.put(key, str(decision), found.seconds)
            subgraph = plans.subgraphs.get(first)
            if subgraph is None or (
                subgraph.strategy,
                subgraph.length,
            ) != (found.strategy, count):
                subgraph = trial.make(found.strategy, found.parts)
            if subgraph is not None:
                subgraph.expectation = self._tuning_cache.expect(key)
        else:
            count = max(1, len(parts))
            self._tuning_cache.put(key, str(_TunedFusion(None, count)))
        fused = () if subgraph is None else subgraph.indices
        alone = {
            index: kernel
            for index, kernel in kernels.items()
            if index < first + count and index not in fused
        }
        return _Tuned(first, count, subgraph, alone)

    def _make_key(self, row: Sequence[RuntimeOperator], values: Mapping[str, Held]) -> str:
        for operator in row:
            if operator.index not in self._described:
                self._described[operator.index] = describe_work(operator)
        work = [self._described[operator.index] for operator in row]
        arrays = materialise_all(values[o.name] for o in row[0].inputs if o.name in values)
        text = "|".join([*work, repr(signature_of(arrays))])
        text += describe_exclusion(self._excluded[row[0].name])
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def _can_fuse(operator: RuntimeOperator) -> bool:
    return operator.error is None and not (
        operator.is_input or operator.is_output or operator.random
    )


def _may_take_part(operator: RuntimeOperator) -> bool:
    return _can_fuse(operator) and len(operator.outputs) == 1


def _is_known(operator: RuntimeOperator, values: Mapping[str, Held]) -> bool:
    return all(operand.name in values for operand in operator.inputs)


def _compute_shares(parts: Sequence[Part]) -> tuple[int, ...]:
    whole = sum(part.seconds for part in parts)
    return tuple(round(_SHARE_UNITS * part.seconds / whole) for part in parts)
