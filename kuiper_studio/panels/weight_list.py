"""The weights of an operator, with their statistics: at once, or when they have been read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.errors import EngineError, ModelFileError
from engine.int8_scales import find_scales
from kuiper_studio.background import Background, Done

if TYPE_CHECKING:
    from engine.runtime import RuntimeAttribute, RuntimeOperator
    from engine.values import Array
    from kuiper_studio.panels.weight_view import WeightSummary, WeightView
    from kuiper_studio.theme import Theme

__all__ = ["WeightList"]

# Largest weights whose statistics are computed at once, and without a click.
AT_ONCE: Final = 1 << 18
UNASKED: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class WeightKey:
    """Key of a weight of a model."""

    graph_number: int
    operator: str
    name: str


class WeightList(QWidget):
    """The weights of an operator, largest first.

    Parameters
    ----------
    theme : Theme

    Attributes
    ----------
    views : dict of str to WeightView
        Of the present operator, by name of the weight.

    Signals
    -------
    weight_requested : (str, str, ndarray)
        The user wants to see a weight in the tensor view: operator, name and values.
    """

    weight_requested = Signal(str, str, object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._operator: RuntimeOperator | None = None
        self._graph_number = 0
        self.views: dict[str, WeightView] = {}
        self._made: list[WeightView] = []  # the first of them show the weights
        self._before: QWidget | None = None  # in the order of the tab key
        self._summaries: dict[WeightKey, WeightSummary] = {}
        self._asked: set[WeightKey] = set()
        self._to_show: WeightKey | None = None  # when it has been read
        self._background = Background(self)
        self._background.finished.connect(self._on_summarized)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 2, 0, 4)
        self._column.setSpacing(0)

    def follow_in_tab_order(self, widget: QWidget) -> None:
        """Have the tab key go from a widget to the first weight."""
        self._before = widget

    def forget(self) -> None:
        """Forget all weights: they are of a model that is gone."""
        self._operator, self._to_show = None, None
        self._graph_number += 1
        self._summaries.clear()
        self._asked.clear()
        self.views = {}
        for view in self._made:
            view.deleteLater()
        self._made.clear()

    def show_operator(self, operator: RuntimeOperator | None) -> None:
        """Show the weights of an operator; None for none."""
        self._operator, self.views = operator, {}
        attributes = operator.attributes if operator is not None else {}
        # Views are filled again: making them takes several frames.
        while len(self._made) < len(attributes):
            self._add_view()
        for view in self._made[len(attributes) :]:
            view.hide()
        if operator is None:
            return
        transposed = "transpose" in operator.type.lower()
        # Largest first: a weight before its bias. The first is unfolded.
        weights = sorted(attributes.items(), key=lambda item: -item[1].size)
        for view, (name, attribute) in zip(self._made, weights, strict=False):
            view.show_weight(
                operator.name,
                name,
                attribute,
                unfolded=not self.views,
                transposed=transposed,
                scales=_scales(name, operator),
            )
            view.show()
            self.views[name] = view
        self.request_summaries()

    def _add_view(self) -> None:
        # Not before there is a weight: an input, which is shown first, has none.
        from kuiper_studio.panels.weight_view import WeightView

        view = WeightView(self._theme)
        view.unfolded.connect(partial(self._request, view, asked=True))
        view.tensor_requested.connect(partial(self._show_tensor, view))
        before = self._made[-1].head if self._made else self._before
        self._column.addWidget(view)
        if before is not None:
            QWidget.setTabOrder(before, view.head)  # what is new comes last otherwise
        self._made.append(view)

    @Slot()
    def request_summaries(self) -> None:
        """Show the statistics of all weights that are seen."""
        for view in self.views.values():
            self._request(view, asked=view.head.isChecked())

    def _request(self, view: WeightView, *, asked: bool) -> None:
        """Show a weight's summary: cached, computed at once, or later."""
        operator, attribute = self._operator, view.attribute
        if operator is None or attribute is None:
            return
        key = WeightKey(self._graph_number, operator.name, view.name)
        if not (self.isVisible() or key == self._to_show):
            return
        if not asked and attribute.size > UNASKED:
            return
        if not attribute.is_stored:
            if view.head.isChecked():
                view.show_message("The model was opened without its .bin.")
            return
        if key not in self._summaries and attribute.size <= AT_ONCE:
            try:
                self._summaries[key] = _summary_of(attribute, view.axis)
            except (TypeError, EngineError) as exc:
                view.show_message(f"No statistics: {exc}.")
                return
        if key in self._summaries:
            view.show_summary(self._summaries[key], attribute.array)
            return
        view.show_message("Computing statistics …")
        if key not in self._asked:
            self._asked.add(key)
            self._background.submit(key, _summary_of, attribute, view.axis)

    def show_tensor(self, focus: QWidget | None) -> None:
        """Show the weight that has the focus, or else the largest, in the tensor view."""
        views = list(self.views.values())
        chosen = [view for view in views if focus is not None and view.isAncestorOf(focus)]
        if views:
            self._show_tensor((chosen or views)[0])

    def _show_tensor(self, view: WeightView) -> None:
        """Show a weight in the tensor view, at once or when it has been read."""
        operator, attribute = self._operator, view.attribute
        if operator is None or attribute is None:
            return
        if not attribute.is_stored:
            view.unfold()  # it says that it is not there
            return
        key = WeightKey(self._graph_number, operator.name, view.name)
        if key not in self._summaries and attribute.size > AT_ONCE:
            self._to_show = key
            view.unfold()
            self._request(view, asked=True)
            return
        try:
            self.weight_requested.emit(operator.name, view.name, attribute.array)
        except EngineError as exc:
            view.show_message(f"{exc}.")

    @Slot(object)
    def _on_summarized(self, done: Done) -> None:
        key = done.key
        if not isinstance(key, WeightKey) or key.graph_number != self._graph_number:
            return
        self._asked.discard(key)
        found = cast("WeightSummary | None", done.result)
        if found is not None:
            self._summaries[key] = found
        if self._operator is None or self._operator.name != key.operator:
            return
        view = self.views[key.name]
        if found is not None:
            view.show_summary(found, self._operator.attributes[key.name].array)
            if key == self._to_show:
                self._to_show = None
                self._show_tensor(view)
        else:
            view.show_message(f"No statistics: {done.error}.")


def _summary_of(attribute: RuntimeAttribute, axis: int) -> WeightSummary:
    """Read a weight, which may take long, and summarise it."""
    from kuiper_studio.panels.weight_view import summarize

    return summarize(attribute.array, axis)


def _scales(name: str, operator: RuntimeOperator) -> Array | None:
    """Return the scales of an int8 weight; None without any, or if they cannot be read."""
    try:
        found = find_scales(name, operator.attributes)
    except ModelFileError:
        return None
    return found.scales if found is not None else None
