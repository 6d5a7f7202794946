"""The autotuner of fusion: measures whether consecutive operators are faster when fused.

It times them one by one and with each strategy, on the values of a finished pass.
"""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.backends.autotuner import ColdCache, is_cold
from engine.backends.fusion import (
    Draft,
    FusedKernel,
    FusedSubgraph,
    Strategy,
    lay_out_as_fused,
    part_of,
    supported_parts,
)
from engine.backends.heap import trim_heap, trim_libraries
from engine.backends.kernel import try_to_make
from engine.backends.lowering import SpecialNumbersError
from engine.backends.subgraph import Subgraph
from engine.backends.tuning_cache import SECONDS_OF_WAKING
from engine.differences import agrees
from engine.errors import EngineError
from engine.memory_bound import current_room
from engine.threads import thread_count
from engine.values import LazyArray, materialise, materialise_all, value_nbytes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from engine.backends.fusion import Part
    from engine.backends.kernel import Kernel
    from engine.runtime import RuntimeOperator
    from engine.values import Held, Value

__all__ = ["Fastest", "FusionTrial", "activate", "make_subgraph", "run_one_by_one"]

_ROUNDS: Final = 6
_FEWEST_ROUNDS: Final = 3
_SECONDS_OF_ROUNDS: Final = 0.2
# Where weights come from memory in every pass, ncnn must be faster by this factor. Its weights
# for Winograd's convolutions are up to four times as large. While other processes use the
# memory, ncnn takes a third longer, the others a tenth.
_LARGER_WEIGHTS: Final = 1.1
_COPIES: Final = 3  # bytes of all results of a subgraph in a trial


class Fastest(NamedTuple):
    """How a subgraph is computed fastest.

    Attributes
    ----------
    share : float
        Share of the time one by one; infinite if no strategy computes the same results.
    seconds : float
        Of a run.
    strategy : Strategy
    parts : sequence of Part
        The fused operators: the first ones of those that were tried.
    """

    share: float
    seconds: float
    strategy: Strategy
    parts: Sequence[Part]


class FusionTrial:
    """Tries to fuse consecutive operators.

    Parameters
    ----------
    kernels : mapping of int to Kernel
        Single kernels of the operators, by index.
    values : mapping of str to Held
        The operands of the pass.
    found : dict of Strategy to Fastest or None
        Results of interrupted trials; new ones are added.
    """

    def __init__(
        self,
        kernels: Mapping[int, Kernel],
        values: Mapping[str, Held],
        found: dict[Strategy, Fastest | None],
    ) -> None:
        self._kernels, self._values, self._found = kernels, values, found

    @property
    def wrong(self) -> set[Strategy]:
        """Strategies whose results differ from those one by one."""
        return {s for s, found in self._found.items() if found and found.seconds == np.inf}

    def fastest(
        self, strategies: Iterable[Strategy], parts: Sequence[Part], fewest: int
    ) -> Generator[None, None, Fastest]:
        """Find the strategy that saves most of the operators' time.

        Yields between trials, so that the caller may stop.

        Parameters
        ----------
        strategies : iterable of Strategy
        parts : sequence of Part
        fewest : int
            Minimum number of operators of a subgraph.

        Raises
        ------
        SpecialNumbersError
            If NaN or infinities are among the values: times with them say little about other
            inputs.
        """
        best, judged = Fastest(np.inf, np.inf, Strategy.NCHW, parts), np.inf
        nchwc = False
        for strategy in strategies:
            # The first strategy of ONNX Runtime is always the faster one for images.
            if strategy is Strategy.NCHW and nchwc:
                continue
            if not self._is_known(strategy):
                found = yield from self._try_strategy(strategy, parts, fewest)
                self._found[strategy] = found
                trim_libraries()  # frees memory for the next
                trim_heap()
                yield
            found = self._found[strategy]
            if found is not None:
                nchwc |= strategy is Strategy.NCHWC
                share = found.share * _find_handicap(strategy, found.parts)
                if share < judged:
                    best, judged = found, share
        return best

    def _is_known(self, strategy: Strategy) -> bool:
        """Return whether an interrupted trial found what can be made again.

        How many operators are tried depends on the time that they take: in a slower moment
        there are fewer than the interrupted trial had.
        """
        found = self._found.get(strategy)
        return strategy in self._found and (
            found is None or all(part.operator.index in self._kernels for part in found.parts)
        )

    def make(self, strategy: Strategy, parts: Sequence[Part]) -> FusedSubgraph | None:
        """Make a subgraph; None if the library refuses."""
        known = {**self._values, **self._run_each(parts, given_out=True)}
        return make_subgraph(parts, known, strategy)

    def _try_strategy(
        self, strategy: Strategy, parts: Sequence[Part], fewest: int
    ) -> Generator[None, None, Fastest | None]:
        """Time one strategy; None if there is no such subgraph."""
        known = {**self._values, **self._run_each(parts, given_out=True)}
        some = supported_parts(strategy, parts, known)
        if sum(part.given for part in some) < fewest:
            return None
        subgraph = make_subgraph(some, known, strategy)
        if subgraph is None:
            return None
        yield
        right = self._is_right(subgraph, some, known)
        known.clear()  # so that kernels reuse its memory, as in a pass
        if not right:
            return Fastest(np.inf, np.inf, strategy, some)
        share, seconds = yield from self._share(subgraph, some)
        return Fastest(share, seconds, strategy, some)

    def _is_right(
        self,
        subgraph: FusedSubgraph,
        parts: Sequence[Part],
        known: Mapping[str, Held],
    ) -> bool:
        """Return whether a subgraph computes the same results."""
        try:
            return subgraph.expect(known, self._kernels.__getitem__) and all(
                agrees(
                    (_run_subgraph(subgraph, part, known),), (materialise(known[part.output]),)
                )
                for part in parts
                if part.given
            )
        except SpecialNumbersError:
            raise
        except Exception:  # noqa: BLE001 - whatever a library dislikes
            return False

    def _share(
        self, subgraph: FusedSubgraph, parts: Sequence[Part]
    ) -> Generator[None, None, tuple[float, float]]:
        """Return the time of a subgraph: as a share of the time one by one, and in seconds."""
        one_by_one: list[float] = []
        fused: list[float] = []
        cold, cache = is_cold(part.operator for part in parts), ColdCache()
        ended = time.perf_counter() + _SECONDS_OF_ROUNDS
        for _ in range(1 + _ROUNDS):
            if cold:
                cache.flush()
            started = time.perf_counter()
            self._run_each(parts)
            one_by_one.append(time.perf_counter() - started)
            if cold:
                cache.flush()
            started = time.perf_counter()
            subgraph.expect(self._values, self._kernels.__getitem__)
            subgraph.run()
            now = time.perf_counter()
            fused.append(now - started)
            if len(fused) > _FEWEST_ROUNDS and now > ended:
                break
            yield
        count = sum(part.given for part in parts)
        # Medians, not minima: a pass is disturbed too, and single kernels more often than a
        # subgraph. The first round does not count: libraries allocate memory in it and keep it,
        # a fifth of the time of a subgraph of large images.
        seconds = median(fused[1:])
        return seconds / (median(one_by_one[1:]) + count * SECONDS_OF_WAKING), seconds

    def _run_each(self, parts: Sequence[Part], *, given_out: bool = False) -> dict[str, Value]:
        """Compute operators one by one, optionally with results laid out as in a subgraph."""
        results: dict[str, Value] = {}
        for part in parts:
            started = time.perf_counter()
            kernel = self._kernels[part.operator.index]
            inputs = _collect_inputs(part.sources, results, self._values)
            kernel.prepare(inputs)
            result = materialise(kernel(inputs)[0])
            part.seconds = min(part.seconds, time.perf_counter() - started)
            results[part.output] = lay_out_as_fused(result, inputs) if given_out else result
        return results


def _find_handicap(strategy: Strategy, parts: Iterable[Part]) -> float:
    cold = strategy is Strategy.ELEMPACK and is_cold(part.operator for part in parts)
    return _LARGER_WEIGHTS if cold else 1


def make_subgraph(
    parts: Sequence[Part], known: Mapping[str, Held], strategy: Strategy
) -> FusedSubgraph | None:
    """Make a subgraph, on all threads; None if the library refuses.

    Parameters
    ----------
    parts : sequence of Part
    known : mapping of str to Held
        Inputs and outputs of all of them, as for a `Draft`.
    strategy : Strategy
    """
    draft = try_to_make(partial(Draft, parts, known, thread_count(), strategy))
    return None if draft is None else try_to_make(partial(FusedSubgraph, draft))


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
        inputs = _collect_inputs(names, results, values)
        try:
            started = time.perf_counter()
            kernel = kernel_of(operator.index)
            kernel.prepare(inputs)
            outputs = materialise_all(kernel(inputs))
            seconds = time.perf_counter() - started
        except EngineError:  # the session will run into the same error and report it
            break
        outputs = [lay_out_as_fused(value, inputs) for value in outputs]
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


def _run_subgraph(subgraph: FusedSubgraph, part: Part, known: Mapping[str, Held]) -> Value:
    inputs = materialise_all(known[name] for name in part.sources)
    (found,) = subgraph.result(part.operator.index, inputs)
    return found.read() if isinstance(found, LazyArray) else found


def _collect_inputs(
    names: Iterable[str], results: Mapping[str, Value], values: Mapping[str, Held]
) -> list[Value]:
    return [results[n] if n in results else materialise(values[n]) for n in names]
