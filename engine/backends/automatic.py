"""The fastest backend for each operator, found by trying.

No library is best everywhere: which is depends on the operator, its parameters, its shapes
and the processor. So the first time that an operator meets inputs of some shapes, every
backend that can computes them a few times; the fastest whose result agrees with NumPy's is
kept, and remembered for the next session.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.backends.activity import announce
from engine.backends.choices import key_of
from engine.backends.forms import SpecialNumbersError
from engine.backends.heap import release_weights, trim_heap, trim_libraries
from engine.backends.kernel import ALONE, REFERENCE, alone, backend_of, candidates
from engine.differences import agrees
from engine.errors import EngineError
from engine.layers.exactness import is_elementwise
from engine.memory_bound import current_room
from engine.values import value_nbytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.backends.choices import Choices
    from engine.backends.exclusions import Exclusions
    from engine.backends.kernel import Backend, Program
    from engine.runtime import RuntimeOperator
    from engine.values import Value

__all__ = ["Automatic", "ColdCache", "is_cold"]

_BURSTS: Final = 3
_ROUNDS: Final = 6  # of a burst
_HOPELESS: Final = 1.5  # times the best of the first burst: such take no part in the others
# NumPy is done with fewer bytes of operands and weights in microseconds, which is not worth
# the milliseconds that a library needs to prepare.
_SMALL: Final = 1 << 14
_SECONDS: Final = 0.02  # after which a burst ends; slow operators get one round of each
# From so many bytes on, what libraries leave behind is worth giving back.
_LARGE: Final = 1 << 20
_COLD_WEIGHTS: Final = 4 << 20
_EVICTING_BYTES: Final = 32 << 20
_RESULTS_OF_A_RACE: Final = 10  # at once, at most
_RIVALS: Final = 2  # programs with such weights, each of which may hold several times as much


class Automatic:
    """Chooses programs.

    Parameters
    ----------
    backends : sequence of Backend
        Besides NumPy.
    choices : Choices
        What is known from earlier.
    excluded : Exclusions
    """

    def __init__(
        self, backends: Sequence[Backend], choices: Choices, excluded: Exclusions
    ) -> None:
        self._backends = {backend.name: backend for backend in backends}
        self._choices, self._excluded = choices, excluded

    def choose(self, operator: RuntimeOperator, inputs: Sequence[Value]) -> tuple[str, Program]:
        """Find the fastest kernel for these inputs: its name and program."""
        nbytes = sum(map(value_nbytes, inputs)) + _weight_bytes(operator)
        if nbytes < _SMALL:
            return REFERENCE, operator.forward
        name, program = self._chosen(operator, inputs)
        if name != ALONE:  # libraries have weights of their own
            release_weights(operator)
        if nbytes >= _LARGE:
            trim_heap()
        return name, program

    def _chosen(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> tuple[str, Program]:
        reference = alone(operator)
        excluded = self._excluded[operator.name]
        key = key_of(operator, inputs, excluded)
        known = self._choices.get(key) or ""
        if known == ALONE:
            return ALONE, reference
        backend = self._backends.get(backend_of(known))
        if backend is not None and backend.name not in excluded:
            compile_kernel = candidates(backend, operator, inputs).get(known)
            program = None if compile_kernel is None else compile_kernel()
            if program is not None:
                return known, program
        return self._measured(operator, inputs, key)

    def _measured(
        self, operator: RuntimeOperator, inputs: Sequence[Value], key: str
    ) -> tuple[str, Program]:
        reference = alone(operator)
        announce(operator.name, ALONE)
        try:
            expected = reference(inputs)
        except EngineError:
            return ALONE, reference  # which says what is wrong
        if value_nbytes(expected) > current_room().left / _RESULTS_OF_A_RACE:
            return ALONE, reference
        race = _Race(operator, inputs, cold=is_cold([operator]))
        typical = True
        for backend in self._allowed(operator):
            for name, compile_kernel in candidates(backend, operator, inputs).items():
                program = compile_kernel()
                announce(operator.name, name)
                try:
                    if program is not None and _computes(operator, program, inputs, expected):
                        if not race.programs:
                            race.enter(ALONE, reference)
                        race.enter(name, program)
                except SpecialNumbersError:
                    typical = False
        best, program = race.winner() if race.programs else (ALONE, reference)
        trim_libraries()
        if typical:  # NaN and infinities say little about other inputs
            self._choices.put(key, best)
        return best, program

    def _allowed(self, operator: RuntimeOperator) -> list[Backend]:
        excluded = self._excluded[operator.name]
        return [each for each in self._backends.values() if each.name not in excluded]


class _Race:
    """Times programs, and lets go of those that cannot win: they may hold much memory.

    Parameters
    ----------
    operator : RuntimeOperator
    inputs : sequence of Value
    cold : bool
        Whether weights are so large that they are to be driven out of the processor's cache
        before each round, and few programs kept.

    Attributes
    ----------
    programs : dict of str to callable
        Those that may still win, by kernel.
    """

    def __init__(
        self, operator: RuntimeOperator, inputs: Sequence[Value], *, cold: bool
    ) -> None:
        self._operator, self._inputs, self._cold = operator, inputs, cold
        self._cache = ColdCache()
        self._least: dict[str, float] = {}
        self.programs: dict[str, Program] = {}

    def enter(self, name: str, program: Program) -> None:
        """Time the first burst of a program."""
        if self._cold:  # what making it took, several times its weights
            trim_heap()
        self.programs[name] = program
        self._least[name] = np.inf
        self._time(name)
        ranked = sorted(self.programs, key=lambda each: self._least[each])
        limit = _HOPELESS * self._least[ranked[0]]
        for place, each in enumerate(ranked):
            if (self._cold and place >= _RIVALS) or self._least[each] > limit:
                del self.programs[each]
        if self._cold:  # room for making the next
            self._cache.give_back()
            trim_libraries()
            trim_heap()

    def winner(self) -> tuple[str, Program]:
        """Time the other bursts in turn; the fastest kernel and its program."""
        for _ in range(_BURSTS - 1):
            for name in self.programs:
                self._time(name)
        return min(self.programs.items(), key=lambda item: self._least[item[0]])

    def _time(self, name: str) -> None:
        """Time a burst.

        In a burst a library's threads are awake, as among alike operators in a pass; and the
        least time is the one that nothing else on the machine has disturbed.
        """
        spent, rounds = 0.0, 0
        while rounds < _ROUNDS and spent < _SECONDS:
            if self._cold:
                self._cache.drive_out()
            announce(self._operator.name, name)
            seconds = _seconds(self.programs[name], self._inputs)
            self._least[name] = min(self._least[name], seconds)
            spent, rounds = spent + seconds, rounds + 1


class ColdCache:
    """Drives what was used last out of the processor's caches.

    In a pass large weights come from memory, and not from the cache of the round before.
    """

    def __init__(self) -> None:
        self._memory: np.ndarray | None = None

    def drive_out(self) -> None:
        """Write so much memory that the caches hold nothing else."""
        if self._memory is None:
            self._memory = np.zeros(_EVICTING_BYTES // 8, np.int64)
        self._memory += 1

    def give_back(self) -> None:
        """Take no memory up until the next time."""
        self._memory = None


def is_cold(operators: Iterable[RuntimeOperator]) -> bool:
    """Whether the weights of operators are too large to be still in a cache."""
    return sum(map(_weight_bytes, operators)) > _COLD_WEIGHTS


def _weight_bytes(operator: RuntimeOperator) -> int:
    return sum(attribute.nbytes for attribute in operator.attributes.values())


def _seconds(program: Program, inputs: Sequence[Value]) -> float:
    started = time.perf_counter()
    program(inputs)
    return time.perf_counter() - started


def _computes(
    operator: RuntimeOperator,
    program: Program,
    inputs: Sequence[Value],
    expected: tuple[Value, ...],
) -> bool:
    elementwise = is_elementwise(operator.layer)
    try:
        return agrees(program(inputs), expected, elementwise=elementwise)
    except SpecialNumbersError:
        raise
    except Exception:  # noqa: BLE001 - a library that fails here is no candidate
        return False
