"""The autotuner: measures which kernel of an operator is fastest.

No library is best everywhere: it depends on the operator, its parameters, its shapes and the
processor. Measuring takes many times as long as a pass, so a pass measures nothing. Where the
tuning cache has no entry, rules choose (`kernel_rules`). After the pass every backend that has
a lowering computes the operator a few times. The tuning cache remembers the fastest kernel
whose result agrees with NumPy's.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.backends.heap import release_weights, trim_heap, trim_libraries
from engine.backends.kernel import (
    ONE_THREAD,
    REFERENCE,
    backend_of,
    candidates,
    one_thread_kernel,
)
from engine.backends.kernel_rules import choose_kernel
from engine.backends.lowering import SpecialNumbersError
from engine.backends.tuning_cache import key_of
from engine.differences import agrees
from engine.errors import EngineError
from engine.layers.exactness import is_elementwise
from engine.memory_bound import current_room
from engine.runtime.activity import announce
from engine.values import value_nbytes

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from engine.backends.exclusions import Exclusions
    from engine.backends.kernel import Backend, CompiledKernel
    from engine.backends.tuning_cache import TuningCache
    from engine.runtime import RuntimeOperator
    from engine.values import Value

    _Chosen = tuple[str, CompiledKernel]

__all__ = ["Autotuner", "ColdCache", "is_cold"]

_BURSTS: Final = 3
_ROUNDS: Final = 6  # runs per burst
_HOPELESS: Final = 1.5  # times the best of the first burst: slower kernels are dropped
# With fewer bytes of operands and weights NumPy takes microseconds, which does not justify the
# milliseconds that a library needs to compile.
_SMALL: Final = 1 << 14
_SECONDS: Final = 0.02  # seconds after which a burst ends; slow operators get one round each
# From this many bytes on, freed memory of libraries is returned to the system.
_LARGE: Final = 1 << 20
_COLD_WEIGHTS: Final = 4 << 20
_EVICTING_BYTES: Final = 32 << 20
_TRIAL_RESULTS: Final = 10  # results that a trial holds at once, at most
_RIVALS: Final = 2  # kernels with large weights, each of which may hold several times as much


class Autotuner:
    """Chooses the fastest kernel of each operator.

    Parameters
    ----------
    backends : sequence of Backend
        Besides NumPy.
    tuning_cache : TuningCache
        Results of earlier sessions.
    excluded : Exclusions
    """

    def __init__(
        self, backends: Sequence[Backend], tuning_cache: TuningCache, excluded: Exclusions
    ) -> None:
        self._backends = {backend.name: backend for backend in backends}
        self._tuning_cache, self._excluded = tuning_cache, excluded

    def choose(self, operator: RuntimeOperator, inputs: Sequence[Value]) -> _Chosen:
        """Return the name and the compiled kernel that is known or likely to be fastest."""
        nbytes = _nbytes(operator, inputs)
        if nbytes < _SMALL:
            return REFERENCE, operator.forward
        key = key_of(operator, inputs, self._excluded[operator.name])
        chosen = self._make_cached(operator, inputs, key)
        if chosen is None:
            chosen = choose_kernel(operator, inputs, self._allowed_backends(operator))
        _free_unused(operator, chosen[0], nbytes)
        return chosen

    def tune(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> Generator[None, None, _Chosen]:
        """Return the name and the compiled kernel that is fastest; measured if unknown.

        Yields between trials, so that the caller may stop.
        """
        nbytes = _nbytes(operator, inputs)
        if nbytes < _SMALL:
            return REFERENCE, operator.forward
        key = key_of(operator, inputs, self._excluded[operator.name])
        chosen = self._make_cached(operator, inputs, key)
        if chosen is None:
            chosen = yield from self._measure(operator, inputs, key)
        _free_unused(operator, chosen[0], nbytes)
        return chosen

    def _make_cached(
        self, operator: RuntimeOperator, inputs: Sequence[Value], key: str
    ) -> _Chosen | None:
        known = self._tuning_cache.get(key) or ""
        if known == ONE_THREAD:
            return ONE_THREAD, self._watch(key, one_thread_kernel(operator))
        backend = self._allowed_backends(operator).get(backend_of(known))
        compile_kernel = (
            None if backend is None else candidates(backend, operator, inputs).get(known)
        )
        compiled = None if compile_kernel is None else compile_kernel()
        return None if compiled is None else (known, self._watch(key, compiled))

    def _watch(self, key: str, compiled: CompiledKernel) -> CompiledKernel:
        expectation = self._tuning_cache.expect(key)
        return compiled if expectation is None else expectation.watch(compiled)

    def _measure(
        self, operator: RuntimeOperator, inputs: Sequence[Value], key: str
    ) -> Generator[None, None, _Chosen]:
        reference = one_thread_kernel(operator)
        announce(operator.name, ONE_THREAD)
        try:
            expected = reference(inputs)
        except EngineError:
            return ONE_THREAD, reference  # which reports the error
        if value_nbytes(expected) > current_room().left / _TRIAL_RESULTS:
            return ONE_THREAD, reference
        trials = _Trials(operator, inputs, cold=is_cold([operator]))
        typical = True
        for backend in self._allowed_backends(operator).values():
            for name, compile_kernel in candidates(backend, operator, inputs).items():
                compiled = compile_kernel()
                announce(operator.name, name)
                try:
                    if compiled is not None and _is_correct(
                        operator, compiled, inputs, expected
                    ):
                        if not trials.variants:
                            trials.enter(ONE_THREAD, reference)
                        trials.enter(name, compiled)
                except SpecialNumbersError:
                    typical = False
                yield
        best, compiled = ONE_THREAD, reference
        if trials.variants:
            best, compiled = yield from trials.winner()
        trim_libraries()
        if not typical:  # NaN and infinities say little about other inputs
            return best, compiled
        self._tuning_cache.put(key, best, trials.seconds(best))
        return best, self._watch(key, compiled)

    def _allowed_backends(self, operator: RuntimeOperator) -> dict[str, Backend]:
        excluded = self._excluded[operator.name]
        return {name: each for name, each in self._backends.items() if name not in excluded}


class _Trials:
    """Times compiled kernels, and frees the memory of those that cannot win.

    Parameters
    ----------
    operator : RuntimeOperator
    inputs : sequence of Value
    cold : bool
        Whether the weights are too large for the processor's cache. Then the cache is emptied
        before each round, and few kernels are kept.

    Attributes
    ----------
    kernels : dict of str to callable
        Kernels that may still win, by name.
    """

    def __init__(
        self, operator: RuntimeOperator, inputs: Sequence[Value], *, cold: bool
    ) -> None:
        self._operator, self._inputs, self._cold = operator, inputs, cold
        self._cache = ColdCache()
        self._least: dict[str, float] = {}
        self.variants: dict[str, CompiledKernel] = {}

    def enter(self, name: str, compiled: CompiledKernel) -> None:
        """Time the first burst of a compiled kernel."""
        if self._cold:  # compiling takes several times the weights
            trim_heap()
        self.variants[name] = compiled
        self._least[name] = np.inf
        self._time(name)
        ranked = sorted(self.variants, key=lambda each: self._least[each])
        limit = _HOPELESS * self._least[ranked[0]]
        for place, each in enumerate(ranked):
            if (self._cold and place >= _RIVALS) or self._least[each] > limit:
                del self.variants[each]
        if self._cold:  # room to compile the next
            self._cache.free()
            trim_libraries()
            trim_heap()

    def winner(self) -> Generator[None, None, _Chosen]:
        """Time the other bursts in turn; return the fastest kernel's name and the kernel."""
        for _ in range(_BURSTS - 1):
            for name in self.variants:
                self._time(name)
                yield
        return min(self.variants.items(), key=lambda item: self._least[item[0]])

    def seconds(self, name: str) -> float | None:
        """Return the shortest time of a kernel; None if it was not timed."""
        return self._least.get(name)

    def _time(self, name: str) -> None:
        """Time a burst.

        In a burst a library's threads stay awake, as between similar operators in a pass. The
        minimum is least disturbed by other programs.
        """
        spent, rounds = 0.0, 0
        while rounds < _ROUNDS and spent < _SECONDS:
            if self._cold:
                self._cache.flush()
            announce(self._operator.name, name)
            seconds = _seconds(self.variants[name], self._inputs)
            self._least[name] = min(self._least[name], seconds)
            spent, rounds = spent + seconds, rounds + 1


class ColdCache:
    """Evicts data from the processor's caches.

    In a pass large weights come from memory, not from the cache of a previous round.
    """

    def __init__(self) -> None:
        self._memory: np.ndarray | None = None

    def flush(self) -> None:
        """Write enough memory to fill the caches."""
        if self._memory is None:
            self._memory = np.zeros(_EVICTING_BYTES // 8, np.int64)
        self._memory += 1

    def free(self) -> None:
        """Free the memory until the next use."""
        self._memory = None


def is_cold(operators: Iterable[RuntimeOperator]) -> bool:
    """Return whether the weights of operators are too large to stay in a cache."""
    return sum(map(_weight_bytes, operators)) > _COLD_WEIGHTS


def _nbytes(operator: RuntimeOperator, inputs: Sequence[Value]) -> int:
    return sum(map(value_nbytes, inputs)) + _weight_bytes(operator)


def _free_unused(operator: RuntimeOperator, name: str, nbytes: int) -> None:
    """Free the memory that the chosen kernel does not need."""
    if name not in {ONE_THREAD, REFERENCE}:  # libraries have their own copy of the weights
        release_weights(operator)
    if nbytes >= _LARGE:
        trim_heap()


def _weight_bytes(operator: RuntimeOperator) -> int:
    return sum(attribute.nbytes for attribute in operator.attributes.values())


def _seconds(compiled: CompiledKernel, inputs: Sequence[Value]) -> float:
    started = time.perf_counter()
    compiled(inputs)
    return time.perf_counter() - started


def _is_correct(
    operator: RuntimeOperator,
    compiled: CompiledKernel,
    inputs: Sequence[Value],
    expected: tuple[Value, ...],
) -> bool:
    elementwise = is_elementwise(operator.layer)
    try:
        return agrees(compiled(inputs), expected, elementwise=elementwise)
    except SpecialNumbersError:
        raise
    except Exception:  # noqa: BLE001 - a library that fails here is no candidate
        return False
