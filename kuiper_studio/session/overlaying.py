"""What the operators of the graph are coloured by, as the user chose it."""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.operator_numbers import OperatorNumbers
    from engine.runtime import RuntimeGraph
    from kuiper_studio.session.measuring import Measuring

__all__ = ["OverlayKind", "Overlaying"]


class OverlayKind(Enum):
    """A quantity by which operators are coloured; FAMILY is none."""

    FAMILY = "family"
    TIME = "time"
    MACS = "macs"
    MEMORY = "memory"
    WEIGHTS = "weights"
    ZEROS = "zeros"
    LARGEST = "largest"
    NONFINITE = "nonfinite"
    ERROR = "error"
    OWN = "own"


_MEASURED: Final = frozenset({OverlayKind.ZEROS, OverlayKind.LARGEST, OverlayKind.NONFINITE})


class Overlaying(QObject):
    """The quantity that is shown, and the user's own numbers.

    Parameters
    ----------
    graph : callable
        Returns the shown graph, or None.
    measuring : Measuring
        Measures the outputs while a quantity needs it.

    Attributes
    ----------
    numbers : mapping of str to float
        The user's own, by operator.
    source : str
        Name of the file that they are from; ``""`` for none.

    Signals
    -------
    changed
        Another quantity was chosen, or there are other numbers.
    """

    changed = Signal()

    def __init__(
        self,
        graph: Callable[[], RuntimeGraph | None],
        measuring: Measuring,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._get_graph, self._measuring = graph, measuring
        self._kind = OverlayKind.FAMILY
        self.numbers: Mapping[str, float] = MappingProxyType({})
        self.source = ""

    @property
    def kind(self) -> OverlayKind:
        """The quantity that is shown."""
        return self._kind

    @property
    def is_on(self) -> bool:
        """Whether operators have other colours than those of their families."""
        return self._kind is not OverlayKind.FAMILY

    def choose(self, kind: OverlayKind) -> None:
        """Colour the operators by a quantity; without numbers there is none of one's own."""
        if kind is OverlayKind.OWN and not self.numbers:
            kind = OverlayKind.FAMILY
        if kind is not self._kind:
            self._kind = kind
            self._measuring.want("overlay", on=kind in _MEASURED)
            self.changed.emit()

    def use_numbers(self, path: Path) -> OperatorNumbers:
        """Colour the operators by the numbers of a file, see `read_operator_numbers`.

        Raises
        ------
        NumbersFileError
            If the file is not one of numbers for this model; then nothing changes.
        """
        from engine.operator_numbers import read_operator_numbers

        graph = self._get_graph()
        names = (each.name for each in graph.operators) if graph is not None else ()
        found = read_operator_numbers(path, frozenset(names))
        self.numbers, self.source = MappingProxyType(dict(found.values)), path.name
        self._kind = OverlayKind.OWN
        self._measuring.want("overlay", on=False)
        self.changed.emit()
        return found

    def reset(self) -> None:
        """Forget the user's own numbers, because another model is shown."""
        self.numbers, self.source = MappingProxyType({}), ""
        if self._kind is OverlayKind.OWN:
            self.choose(OverlayKind.FAMILY)
