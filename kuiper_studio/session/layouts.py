"""Meanings of operands' dimensions, inferred on another thread when a view first needs one."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from engine.runtime.members import members_of
from engine.values import ArrayMetadata
from kuiper_studio.background import Background

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.axes import Layout
    from engine.runtime import RuntimeGraph
    from kuiper_studio.background import Done
    from kuiper_studio.session.snapshot import Records
    from kuiper_studio.session.tensors import Tensors

__all__ = ["Layouts"]

_LATE_MS: Final = 200  # seconds without a new result until layouts adopt the sizes of a run


class Layouts(QObject):
    """Layouts of the operands of the shown model.

    Parameters
    ----------
    graph : callable
        Returns the shown graph, or None.
    tensors : Tensors
        Source of computed shapes, which replace the file's.
    records : callable
        Returns the records of the run, with the same shapes; they may be read on any thread.

    Signals
    -------
    changed
        Layouts are new or have changed.
    chosen_changed
        The user has chosen another layout, or other places for axes.
    roles_restored
        The places for axes are those of an earlier session.
    """

    changed = Signal()
    chosen_changed = Signal()
    roles_restored = Signal()

    def __init__(
        self,
        graph: Callable[[], RuntimeGraph | None],
        tensors: Tensors,
        records: Callable[[], Records],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._get_graph, self._tensors, self._get_records = graph, tensors, records
        self._graph: RuntimeGraph | None = None
        self._found: Mapping[str, Layout] | None = None
        self._chosen: dict[str, Layout] = {}
        self._roles: Mapping[str, tuple[str, ...]] = {}
        self._background: Background | None = None
        self._asked: object = None  # key of the last request for the shown model
        self._late = QTimer(self, singleShot=True, interval=_LATE_MS)
        self._late.timeout.connect(self._infer)

    def find(self, operand: str) -> Layout | None:
        """Return the layout of an operand at its current size; None if it is not known yet."""
        self._adopt()
        if self._found is None:
            if not self._asked:
                self._infer()
            return None
        layout, shape = self._found.get(operand), self._shape(operand)
        if shape is None or (layout is not None and layout.shape == shape):
            return layout
        self._late.start()  # the run has other sizes than the known layouts
        return None

    def source(self, operand: str, member: int) -> str:
        """Return the operand that is a member of a list, whose layout it has.

        Parameters
        ----------
        operand : str
        member : int
            Index among the members, those of nested lists included.

        Returns
        -------
        str
            The operand itself if it is no list that an operator makes of others.
        """
        self._adopt()
        graph = self._graph
        if graph is None or operand not in graph.operands:
            return operand
        members = islice(members_of((graph.operands[operand],)), member, member + 1)
        return next((each.name for each in members), operand)

    @property
    def chosen(self) -> Mapping[str, Layout]:
        """The user's layouts for the shown model, by operand."""
        return self._chosen if self._get_graph() is self._graph else {}

    def choose(self, operand: str, layout: Layout | None) -> None:
        """Set the layout of an operand; None returns to the inferred one."""
        if self._graph is None or self._get_graph() is not self._graph:
            return
        self._chosen.pop(operand, None)
        if layout is not None:
            self._chosen[operand] = layout
        self.chosen_changed.emit()
        self._infer()

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """Names of where the user wants the axes of the shown model, by their meaning."""
        return self._roles if self._get_graph() is self._graph else {}

    def set_roles(self, roles: Mapping[str, tuple[str, ...]]) -> None:
        """Keep where the user wants axes."""
        self._adopt()
        self._roles = dict(roles)
        self.chosen_changed.emit()

    def restore(
        self, chosen: Mapping[str, Layout], roles: Mapping[str, tuple[str, ...]]
    ) -> None:
        """Restore what the user chose in an earlier session with the shown model."""
        self._adopt()
        self._chosen, self._roles = dict(chosen), dict(roles)
        self.roles_restored.emit()

    def _adopt(self) -> None:
        """Drop the layouts of another model."""
        graph = self._get_graph()
        if graph is not self._graph:
            self._graph, self._found, self._chosen = graph, None, {}
            self._roles = {}
            self._asked = None
            self._late.stop()

    def _shape(self, operand: str) -> tuple[int, ...] | None:
        metadata = self._tensors.metadata(operand)
        return metadata.shape if isinstance(metadata, ArrayMetadata) else None

    @Slot()
    def _infer(self) -> None:
        """Infer all layouts on another thread; it also imports the modules for that."""
        graph = self._graph
        if graph is None:
            return
        if self._background is None:
            self._background = Background(self)
            self._background.finished.connect(self._on_finished)
        records, chosen = self._get_records(), dict(self._chosen)
        self._asked = object()
        self._background.submit(self._asked, _infer_layouts, graph, records, chosen)

    @Slot(object)
    def _on_finished(self, done: Done) -> None:
        if done.key is self._asked and isinstance(done.result, dict):
            self._found = done.result
            self.changed.emit()


def _infer_layouts(
    graph: RuntimeGraph,
    records: Records,
    chosen: Mapping[str, Layout],
) -> Mapping[str, Layout]:
    from engine.axes import infer_layouts

    # Here: to ask for the shapes of ten thousand operands takes several frames.
    shapes: dict[str, tuple[int, ...] | None] = dict.fromkeys(graph.operands)
    for record in records:
        for name, metadata in record.outputs.by_operand.items():
            shapes[name] = metadata.shape if isinstance(metadata, ArrayMetadata) else None
    return infer_layouts(graph, shapes, chosen)
