"""The banner over the centre that explains a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QGuiApplication
from typing_extensions import override

from engine.errors import UnsupportedOperatorError
from engine.text import format_shape
from kuiper_studio.item_models.text import caption_text, elided
from kuiper_studio.panels.message_banner import MessageBanner

if TYPE_CHECKING:
    from pathlib import Path

    from PySide6.QtWidgets import QWidget

    from kuiper_studio.session import Failure, StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["FailureBanner"]

_LONGEST_NAME: Final = 40


class FailureBanner(MessageBanner):
    """Shows a `Failure` with buttons that lead to its cause.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Signals
    -------
    supply_requested : str
        The user wants to choose a file that overrides the output of the operator of that name.
    layers_requested
        The user wants to choose a layer file.
    reload_requested
        The user wants to reload the model.
    weights_requested
        The user wants to choose a ``.bin``.
    reload_offered : bool
        Whether the banner shows a failure that reloading may fix.
    """

    supply_requested = Signal(object)
    layers_requested = Signal()
    reload_requested = Signal()
    weights_requested = Signal()
    reload_offered = Signal(bool)

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(theme, parent)
        self.setObjectName("failure")
        self._session = session
        self._failure: Failure | None = None
        self._go_to_suspect = self.add_button("", "danger")
        self._go_to_failed = self.add_button("")
        self._reload = self.add_button("Reload model")
        self._choose_weights = self.add_button("Choose .bin…")
        self._supply = self.add_button("Supply output…")
        self._load = self.add_button("Load layers…")
        self._load_again = self.add_button("")
        self._copy = self.add_button("Copy details")
        self._go_to_suspect.clicked.connect(self._select_suspect)
        self._go_to_failed.clicked.connect(self._select_failed)
        self._reload.clicked.connect(self.reload_requested)
        self._choose_weights.clicked.connect(self.weights_requested)
        self._supply.clicked.connect(self._ask_for_output)
        self._load.clicked.connect(self.layers_requested)
        self._load_again.clicked.connect(self._load_layers_again)
        self._copy.clicked.connect(self._copy_details)
        self.closed.connect(self._dismiss)

    @property
    def concerns_operator(self) -> bool:
        """Whether it shows the failure of an operator."""
        return self._failure is not None and bool(self._failure.operator)

    @property
    def concerns_input(self) -> bool:
        """Whether it shows what is wrong with an input."""
        return self._failure is not None and self._failure.concerns_input

    @property
    def concerns_study(self) -> bool:
        """Whether it shows why a comparison or another study was not made."""
        return self._failure is not None and self._failure.concerns_study

    @property
    def concerns_layers(self) -> bool:
        """Whether it shows an error in a layer file."""
        return self._failure is not None and self._failure.layer_file is not None

    def show_failure(self, failure: Failure) -> None:
        """Explain a failure."""
        self._failure = failure
        graph = self._session.graph
        detail = ""
        if graph is not None and failure.operator:
            operator = graph.operator(failure.operator)
            detail = f"{operator.type}, operator #{operator.index}"
        self._go_to_suspect.setText(_go_to(failure.suspect))
        self._go_to_suspect.setVisible(bool(failure.suspect))
        self._go_to_failed.setText(_go_to(failure.operator))
        self._go_to_failed.setVisible(bool(failure.operator))
        self._reload.setVisible(failure.reload)
        self._choose_weights.setVisible(failure.lacks_weights)
        self._supply.setVisible(self._session.can_supply(failure.operator))
        self._load.setVisible(self._lacks_layer())
        layers = self._layer_file()
        self._load_again.setText(
            f"Load {caption_text(layers.name)} again" if layers is not None else ""
        )
        self._load_again.setVisible(layers is not None)
        self.reload_offered.emit(failure.reload)  # which frees its space
        self.show_message(failure.title, failure.reason, failure.hint, detail)

    def _layer_file(self) -> Path | None:
        """Return the layer file to fix: it cannot be loaded, or its layer failed."""
        graph, failure = self._session.graph, self._failure
        if failure is None:
            return None
        if graph is not None and failure.operator:
            return graph.operator(failure.operator).layer_file
        return failure.layer_file

    def _lacks_layer(self) -> bool:
        graph, failure = self._session.graph, self._failure
        if graph is None or failure is None or not failure.operator:
            return False
        return isinstance(graph.operator(failure.operator).error, UnsupportedOperatorError)

    @Slot()
    def _ask_for_output(self) -> None:
        if self._failure is not None:
            self.supply_requested.emit(self._failure.operator)

    @Slot()
    def _load_layers_again(self) -> None:
        path = self._layer_file()
        if path is not None:
            self._session.load_layers(path)

    @Slot()
    def _select_suspect(self) -> None:
        if self._failure is not None:
            self._session.select(self._failure.suspect)

    @Slot()
    def _select_failed(self) -> None:
        if self._failure is not None:
            self._session.select(self._failure.operator)

    @Slot()
    def _copy_details(self) -> None:
        QGuiApplication.clipboard().setText(f"{self.plain_text()}\n{self._facts()}".strip())

    def _facts(self) -> str:
        """Return parameters and operands of the failed operator, one per line."""
        graph = self._session.graph
        if graph is None or self._failure is None or not self._failure.operator:
            return ""
        operator = graph.operator(self._failure.operator)
        lines = [f"model: {graph.source_path.name}", f"{operator.type} {operator.name}"]
        lines += [f"  {name} = {value!r}" for name, value in operator.params.items()]
        for operand in operator.inputs:
            metadata = self._session.tensors.metadata(operand.name)
            computed = format_shape(getattr(metadata, "shape", None)) or "not an array"
            exported = format_shape(operand.shape) or "?"
            lines.append(f"  input {operand.name}: {computed}, exported as {exported}")
        return "\n".join(lines)

    @Slot()
    def _dismiss(self) -> None:
        self._session.dismiss_failure()
        self.clear()

    # Override

    @override
    def clear(self) -> None:
        """Hide the banner."""
        self._failure = None
        super().clear()
        self.reload_offered.emit(False)  # noqa: FBT003 - Qt's signature


def _go_to(name: str) -> str:
    """Return the caption of a button that goes to an operator."""
    return f"Go to {caption_text(elided(name, _LONGEST_NAME))}"
