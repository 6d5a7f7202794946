"""What the outputs of the shown model mean: the user's choices, and the engine's readings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal

from kuiper_studio.engine_service.protocol import MeaningRequest
from kuiper_studio.session.lookups import Lookups

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from PySide6.QtCore import QObject

    from engine.runtime import RuntimeGraph
    from kuiper_studio.engine_service.protocol import Answer
    from kuiper_studio.session.client import EngineClient
    from kuiper_studio.session.tensors import Tensors
    from kuiper_studio.session.workspace import Workspace

__all__ = ["MeaningChoice", "Meanings"]

OptionValue = float | int | str


@dataclass(frozen=True, slots=True)
class MeaningChoice:
    """How the user wants the outputs of a model to be read.

    Attributes
    ----------
    reading : str
        Name of a reading; ``""`` for the one that fits best.
    options : mapping of str to value
        Those that the user has set, by name.
    """

    reading: str = ""
    options: Mapping[str, OptionValue] = field(default_factory=dict)


class Meanings(Lookups[MeaningRequest]):
    """Readings of the outputs of the shown model.

    Parameters
    ----------
    client : EngineClient
    graph : callable
        Returns the shown graph, or None.
    tensors : Tensors
    workspace : Workspace
        Has the labels.

    Signals
    -------
    chosen_changed
        The user has chosen another reading or option.
    """

    chosen_changed = Signal()

    def __init__(
        self,
        client: EngineClient,
        graph: Callable[[], RuntimeGraph | None],
        tensors: Tensors,
        workspace: Workspace,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(client, parent)
        self._get_graph, self._tensors, self._workspace = graph, tensors, workspace
        self._graph: RuntimeGraph | None = None
        self._choice = MeaningChoice()
        workspace.layers_changed.connect(self.forget)

    @property
    def choice(self) -> MeaningChoice:
        """The user's choice for the shown model."""
        graph = self._get_graph()
        if graph is not self._graph:
            self._graph, self._choice = graph, MeaningChoice()
            self.forget()
        return self._choice

    def choose(self, reading: str) -> None:
        """Choose a reading; ``""`` for the one that fits best."""
        if reading != self.choice.reading:
            self._choice = replace(self._choice, reading=reading)
            self.chosen_changed.emit()

    def set_option(self, name: str, value: OptionValue) -> None:
        """Set an option of readings."""
        if self.choice.options.get(name) != value:
            options = {**self._choice.options, name: value}
            self._choice = replace(self._choice, options=options)
            self.chosen_changed.emit()

    def restore(self, choice: MeaningChoice) -> None:
        """Restore the user's choice of an earlier session with the shown model."""
        self._graph, self._choice = self._get_graph(), choice
        self.forget()

    @property
    def is_computed(self) -> bool:
        """Whether all outputs of the model have a value."""
        return bool(self._serials()) and None not in self._serials()

    def read(self, sample: int = 0) -> Answer | None:
        """Return what the outputs mean, or why that is not known; None until it is here.

        Only for outputs that are computed. The result is an `engine.output_reading.Meaning`.
        While an option changes, that of an earlier value.
        """
        graph, choice = self._get_graph(), self.choice
        serials = tuple(serial for serial in self._serials() if serial is not None)
        if graph is None or not serials:
            return None
        wanted = MeaningRequest(
            0,
            graph.output_operands[0].name,
            serials,
            choice.reading,
            tuple(sorted(choice.options.items())),
            self._workspace.labels,
            sample,
        )
        # While a slider moves, the engine gets one request after the other.
        found = self.look(wanted) if not self.is_waiting or self.knows(wanted) else None
        if found is not None:
            return found
        return self.latest(lambda key: replace(wanted, ticket=0, options=key.options) == key)

    def _serials(self) -> list[int | None]:
        graph = self._get_graph()
        outputs = graph.output_operands if graph is not None else ()
        return [self._tensors.serial(operand.name) for operand in outputs]
