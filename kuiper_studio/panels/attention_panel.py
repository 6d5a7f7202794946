"""The attention panel: the heads of an attention, and the keys of one query."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import (
    QBoxLayout,
    QCheckBox,
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSlider,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.text import format_brief, format_shape
from kuiper_studio.elided_label import SteadyLabel
from kuiper_studio.engine_service.protocol import AttentionRequest
from kuiper_studio.panels.attention_canvas import HeadsMosaic, KeysPicture, KeysView
from kuiper_studio.panels.input_picture import InputPicture
from kuiper_studio.panels.panel import Panel, plain_label
from kuiper_studio.panels.result_dock import TITLES
from kuiper_studio.spin_box import SpinBox

if TYPE_CHECKING:
    from PySide6.QtGui import QImage, QResizeEvent, QShowEvent

    from engine.attention import Attention, TokenPlaces
    from engine.attention.results import AttentionScores
    from engine.runtime import RuntimeGraph
    from engine.values import Array
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

    _Places: TypeAlias = tuple[TokenPlaces | None, TokenPlaces | None, int]

__all__ = ["AttentionPanel"]

_MEAN, _LARGEST = -1, -2  # instead of the number of a head
_OPACITY: Final = 70
_SPIN_WIDTH: Final = 62
_WIDE: Final = 900  # pixels from which the stages are beside the pictures
_SCROLL_BAR: Final = 12
_STAGES: Final = 148  # height of seven rows
_LEAST_STAGES: Final = 58  # in a panel that is lower than this:
_ROOMY: Final = 520
_WAITING: Final = "Computing the weights…"


class AttentionPanel(Panel):
    """Attentions of the model: heads, the keys of a query, stages, and rollout.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Attributes
    ----------
    heads : HeadsMosaic
    keys : KeysView
    message : QLabel
        What is to be done, where there is nothing to show.
    """

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("attention", TITLES["attention"], session, theme, parent)
        self._graph: RuntimeGraph | None = None
        self._scores: AttentionScores | None = None
        self._rollout: Array | None = None
        self._queries: TokenPlaces | None = None
        self._key_places: TokenPlaces | None = None
        self._places: dict[str, _Places] = {}
        self._found_blocks: dict[str, tuple[tuple[Attention, int], ...]] = {}
        self._picture = InputPicture(session)
        self._head = 0
        self._query_text = ""
        self._is_new = True  # no query of this model has been shown
        self._note = ""
        self._listed: AttentionScores | None = None
        self._make_fields()
        self.heads, self.keys = HeadsMosaic(theme), KeysView(theme)
        self.message = plain_label("attentionMessage", "secondary")
        self.message.setWordWrap(True)
        self.verdict = plain_label("attentionVerdict", "caption")
        self.verdict.setWordWrap(True)
        self.caption = plain_label("attentionCaption", "caption")
        self.caption.setWordWrap(True)
        self.value = SteadyLabel("attentionValue", "mono2")
        self._stages = QGridLayout()
        self._build()
        self._connect()
        self.refresh()

    # Building

    def _make_fields(self) -> None:
        self.chosen = _combo("Attention", "Operator whose weights are shown")
        self.chosen.setMinimumContentsLength(12)
        self.chosen.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._fields = QWidget()
        self._fields.hide()  # they are empty before the first weights
        self.sample = _spin("Sample", "Sample of the batch, or window")
        self.query = _spin("Query", "Token whose keys are shown")
        self.tiles = _combo(
            "Pictures of heads",
            "All queries by their keys, or the keys of one query on their grid",
        )
        self.tiles.addItems(["All queries", "One query"])
        self.shown = _combo("Heads", "Heads whose weights are shown at the right")
        self.rollout = QCheckBox("Rollout")
        self.opacity = QSlider(Qt.Orientation.Horizontal)
        self.opacity.setRange(0, 100)
        self.opacity.setValue(_OPACITY)
        self.opacity.setAccessibleName("Opacity of the keys over the picture")
        self.opacity.setToolTip(self.opacity.accessibleName())
        self.opacity.setMaximumWidth(110)

    def _build(self) -> None:
        pictures = QHBoxLayout()
        pictures.setSpacing(10)
        pictures.addWidget(self.heads, 1)
        pictures.addWidget(self.keys, 1)
        foot = QHBoxLayout()
        foot.addWidget(self.value, 1)
        self._opacity_label = QLabel("Overlay")
        foot.addWidget(self._opacity_label)
        foot.addWidget(self.opacity)
        left = QVBoxLayout()
        left.addLayout(pictures, 1)
        left.addLayout(foot)
        left.addWidget(self.caption)
        self._body = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._body.setContentsMargins(12, 4, 12, 10)
        self._body.setSpacing(10)
        self._body.addLayout(left, 1)
        self._body.addWidget(self._make_stages())
        self._content = QWidget()
        self._content.setLayout(self._body)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self._make_head())
        self.message.setContentsMargins(12, 8, 12, 8)
        column.addWidget(self.message)
        column.addWidget(self._content, 1)
        self._rest = QWidget()  # keeps the fields at the top while there is only a message
        column.addWidget(self._rest, 1)

    def _make_head(self) -> QVBoxLayout:
        first, second = QHBoxLayout(), QHBoxLayout(self._fields)
        second.setContentsMargins(0, 0, 0, 0)
        second.setSpacing(6)
        first.addWidget(self.chosen, 1)
        first.addWidget(self.rollout)
        self._sample_label = QLabel("Sample")
        for widget in (
            self._sample_label, self.sample, QLabel("Query"), self.query, self.tiles, self.shown
        ):  # fmt: skip
            second.addWidget(widget)
        second.addStretch(1)
        head = QVBoxLayout()
        head.setContentsMargins(12, 8, 12, 4)
        head.setSpacing(6)
        head.addLayout(first)
        head.addWidget(self._fields)
        return head

    def _make_stages(self) -> QWidget:
        self._stages.setContentsMargins(0, 4, 8, 4)
        self._stages.setHorizontalSpacing(12)
        self._stages.setVerticalSpacing(3)
        self._stages.setColumnStretch(0, 1)
        inner = QWidget()
        inner.setLayout(self._stages)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setAccessibleName("Stages of the attention")
        area.setWidget(inner)
        self._stages_area = area
        for part in (inner, area.viewport()):
            part.setAutoFillBackground(False)
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(area)
        column.addWidget(self.verdict)
        column.addStretch(1)
        return holder

    def _connect(self) -> None:
        session = self.session
        session.graph_changed.connect(self._on_graph_changed)
        session.selection_changed.connect(self._on_selected)
        session.attentions.arrived.connect(self.refresh)
        session.layouts.changed.connect(self._forget_places)
        session.layouts.changed.connect(self.refresh)
        session.tensors.recalled.connect(self._on_recalled)
        session.settled.connect(self.refresh)
        self.chosen.activated.connect(self._on_chosen)
        for changed in (self.sample.valueChanged, self.query.valueChanged):
            changed.connect(self.refresh)
        self.tiles.currentIndexChanged.connect(self._show)
        self.shown.activated.connect(self._on_shown)
        self.rollout.toggled.connect(self.refresh)
        self.opacity.valueChanged.connect(lambda value: self.keys.set_opacity(value / 100))
        self.heads.chosen.connect(self._on_head_chosen)
        self.keys.place_chosen.connect(self._on_place_chosen)
        self.keys.token_chosen.connect(self._on_token_chosen)
        self.keys.hovered.connect(self._on_hovered)

    @override
    def keyboard_target(self) -> QWidget:
        return self.chosen

    # What is shown

    @property
    def attention(self) -> Attention | None:
        """The chosen attention."""
        found, place = self.session.attentions.found, self.chosen.currentIndex()
        return found[place] if 0 <= place < len(found) else None

    @Slot()
    def refresh(self) -> None:
        """Show what is known, and ask the engine for what is not."""
        if self.session.graph is not self._graph:
            self._on_graph_changed()
        if not self.isVisible():
            return
        self._scores = self._rollout = None
        text = self._look()
        self.message.setText(text)
        self.message.setVisible(bool(text))
        self._content.setVisible(not text)
        self._rest.setVisible(bool(text))
        if text and text != _WAITING:  # while new weights come, a field keeps the keyboard
            self._fields.hide()
        if not text:
            self._show()

    def _look(self) -> str:
        """Find the weights to show; return why there are none, or ``""``."""
        session, graph, attention = self.session, self._graph, self.attention
        if graph is None or attention is None:
            return "This model has no attention that is known."
        serial = session.tensors.serial(attention.output)
        if serial is None:
            return f"{attention.operator} has not run yet. Run to it first."
        self._queries, self._key_places, heads = self._find_places(graph, attention)
        if not heads:
            return _WAITING
        answer = session.attentions.look(
            AttentionRequest(0, attention, serial, heads, *self._wanted(heads))
        )
        if answer is None:
            return _WAITING
        scores: Any = answer.result
        if scores is None:
            return answer.reason
        self._scores = scores
        self._bound_fields(scores)
        if self._moves_on(scores):
            return self._look()  # the other query may have to be asked for
        return self._look_at_rollout(attention, serial)

    def _moves_on(self, scores: AttentionScores) -> bool:
        """Open a model at the last query where the first sees one key, as in causal attention.

        Returns
        -------
        bool
            Whether another query is to be shown than was.
        """
        is_new, self._is_new, last = self._is_new, False, scores.shape[2] - 1
        query = self.query.value()
        self._note = self._note if query == last else ""
        if not is_new or query or not last:
            return False
        seen = self._rows(scores, self.sample.value(), query).any(axis=0)
        if np.count_nonzero(seen) != 1:
            return False
        self._note = " Query 0 sees one key only, so the last query is shown."
        with QSignalBlocker(self.query):
            self.query.setValue(last)
        return True

    def _find_places(self, graph: RuntimeGraph, attention: Attention) -> _Places:
        """Return where queries and keys lie, and the number of heads; 0 if it is not known."""
        found = self._places.get(attention.operator)
        if found is None:
            from engine.attention import find_heads, key_places, query_places

            find = self.session.layouts.find
            found = (
                query_places(graph, attention, find),
                key_places(graph, attention, find),
                find_heads(graph, attention, find),
            )
            if found[2]:
                self._places[attention.operator] = found
        return found

    @Slot()
    def _forget_places(self) -> None:
        """Find all places again, for layouts have changed."""
        self._places.clear()
        self._found_blocks.clear()

    def _wanted(self, heads: int) -> tuple[int, int]:
        """Return the sample and query to ask for: 0 where the answer has all of them."""
        from engine.attention.results import MOST_WEIGHTS

        queries, keys = self._queries, self._key_places
        if queries is None or keys is None:
            return 0, 0
        one = heads * queries.count * keys.count
        sample = min(self.sample.value(), queries.samples - 1)
        query = min(self.query.value(), queries.count - 1)
        if one > MOST_WEIGHTS:
            return sample, query
        return (sample, 0) if one * queries.samples > MOST_WEIGHTS else (0, 0)

    def _look_at_rollout(self, attention: Attention, serial: int) -> str:
        blocks = self._blocks(attention)
        self.rollout.setEnabled(bool(blocks))
        self.rollout.setToolTip(
            "Multiply the weights of all blocks up to this one: what each token takes of the "
            "first block's tokens (heads averaged, residual connections added)"
            if blocks
            else "Rollout needs self-attention over the same tokens in all blocks"
        )
        if not (blocks and self.rollout.isChecked()):
            return ""
        sample = self.sample.value()
        answer = self.session.attentions.look(
            AttentionRequest(
                0, attention, serial, 0, sample, 0, blocks, of_windows=self._is_windowed
            )
        )
        if answer is None:
            return "Computing the rollout…"
        found: Any = answer.result
        self._rollout = found
        return answer.reason

    def _blocks(self, attention: Attention) -> tuple[tuple[Attention, int], ...]:
        """Return the attentions of a rollout and their heads; empty if there is none."""
        found = self._found_blocks.get(attention.operator)
        if found is None:
            found = self._found_blocks[attention.operator] = self._find_blocks(attention)
        return found

    def _find_blocks(self, attention: Attention) -> tuple[tuple[Attention, int], ...]:
        from engine.attention import find_blocks

        queries, graph = self._queries, self._graph
        if graph is None or queries is None or self._scores is None:
            return ()
        *_, rows, columns = self._scores.shape
        if rows != columns:
            return ()
        found = []
        for block in find_blocks(graph, self.session.attentions.found, attention):
            places, _, heads = self._find_places(graph, block)
            if places is not None and _have_same_tokens(places, queries):
                found.append((block, heads))
        return tuple(found)

    @property
    def _is_windowed(self) -> bool:
        return self._queries is not None and self._queries.is_windowed

    def _bound_fields(self, scores: AttentionScores) -> None:
        """Bring the fields into the bounds of the weights."""
        samples, heads, queries, _ = scores.shape
        for field, count in ((self.sample, samples), (self.query, queries)):
            with QSignalBlocker(field):
                field.setMaximum(count - 1)
        self._sample_label.setText("Window" if self._is_windowed else "Sample")
        for widget in (self._sample_label, self.sample):
            widget.setVisible(samples > 1)
        self._fields.show()
        if self.shown.count() != heads + 2:
            with QSignalBlocker(self.shown):
                self.shown.clear()
                for number in range(heads):
                    self.shown.addItem(f"Head {number}", number)
                self.shown.addItem("Mean of heads", _MEAN)
                self.shown.addItem("Largest of heads", _LARGEST)
            self._head = min(self._head, heads - 1)
        with QSignalBlocker(self.shown):
            self.shown.setCurrentIndex(self.shown.findData(self._head))

    @Slot()
    def _show(self) -> None:
        scores = self._scores
        if scores is None:
            return
        sample, query = self.sample.value(), self.query.value()
        self.shown.setEnabled(self._rollout is None)
        self._show_heads(scores, sample, query)
        self.keys.show_keys(self._keys_picture(scores, sample, query))
        has_picture = self.keys.shown is not None and self.keys.shown.picture is not None
        self._opacity_label.setVisible(has_picture)
        self.opacity.setVisible(has_picture)
        self._show_texts(scores)

    def _rows(self, scores: AttentionScores, sample: int, query: int) -> Array:
        """Return the weights of the query, shape (H, S)."""
        if scores.block != (1, 1):
            return scores.rows
        return scores.weights[sample - scores.first, :, query]

    def _show_heads(self, scores: AttentionScores, sample: int, query: int) -> None:
        matrices = scores.weights[sample - scores.first]
        rows, places = self._rows(scores, sample, query), self._key_places
        row: int | None = query // scores.block[0]
        tiles: Array = matrices
        of_query = self.tiles.currentIndex() == 1
        if of_query and places is not None and places.grid is not None:
            page = self._page(places, sample, query)
            count = places.count
            tiles = np.stack([places.fold(sample, each[:count], page) for each in rows])
            tiles, row = _without_empty(tiles), None
        elif of_query:
            side = max(1, round(rows.shape[1] ** 0.5))
            padded = -(-rows.shape[1] // side) * side
            tiles = np.full((len(rows), padded), np.nan)
            tiles[:, : rows.shape[1]] = rows
            tiles, row = tiles.reshape(len(rows), -1, side), None
        shares: tuple[str, ...] = ()
        if places is not None and len(places.beside) == 1:
            found = rows[:, places.beside[0]].tolist()
            shares = tuple([f"{share:.3f}".removeprefix("0") for share in found])
        self.heads.show_tiles(tiles, shares)
        self.heads.show_marks(self._head if self._rollout is None else _MEAN, row)

    def _page(self, places: TokenPlaces, sample: int, query: int) -> tuple[int, ...]:
        """Return which picture of the keys to show: that of the query, if it has one."""
        rank = len(places.plan.roles) - 2 if places.plan is not None else 0
        at = self._queries.place(sample, query) if self._queries is not None else None
        if at is None and places.grid is not None:
            shown = (places.place(sample, key) for key in range(places.count))
            at = next((each for each in shown if each is not None), None)
        return at[:-2] if at is not None and len(at) - 2 == rank else (0,) * rank

    def _keys_picture(self, scores: AttentionScores, sample: int, query: int) -> KeysPicture:
        rows = self._rows(scores, sample, query)
        if self._rollout is not None and self._is_windowed:
            return self._whole_picture(self._rollout[query], sample, query)
        if self._rollout is not None:
            weights = self._rollout[query]
        elif self._head >= 0:
            weights = rows[self._head]
        else:
            weights = rows.mean(0) if self._head == _MEAN else rows.max(0)
        queries, keys = self._queries, self._key_places
        names = [
            keys.name(key) if keys is not None else str(key) for key in range(weights.size)
        ]
        same = scores.shape[2] == scores.shape[3]
        name = queries.name(query) if queries is not None else str(query)
        own = query if same else -1
        if keys is None or keys.grid is None:
            return KeysPicture(weights, tuple(names), name, query_key=own)
        page = self._page(keys, sample, query)
        cells = keys.fold(sample, weights[: keys.count], page)
        return KeysPicture(
            weights,
            tuple(names),
            name,
            cells,
            (*keys.beside, *range(keys.count, weights.size)),
            self._query_cell(sample, query),
            self._input_picture(page),
            own,
        )

    def _whole_picture(self, rollout: Array, sample: int, query: int) -> KeysPicture:
        """Return what the query takes of all cells of the picture, over all windows."""
        queries = self._queries
        at = queries.place(sample, query) if queries is not None else None
        page = at[:-2] if at is not None else (0,) * (rollout.ndim - 2)
        cells: Array = rollout[page]
        names = tuple([f"({row}, {column})" for row, column in np.ndindex(cells.shape)])
        return KeysPicture(
            cells.reshape(-1),
            names,
            queries.name(query) if queries is not None else str(query),
            cells,
            (),
            self._query_cell(sample, query),
            self._input_picture(page),
        )

    def _query_cell(self, sample: int, query: int) -> tuple[int, int] | None:
        """Return the cell of the query on the grid of the keys."""
        queries, keys = self._queries, self._key_places
        if queries is None or queries.grid is None or keys is None or keys.grid is None:
            return None
        at = queries.place(sample, query)
        if at is None:
            return None
        return _scaled(at[-2:], queries.grid, keys.grid)

    def _input_picture(self, page: tuple[int, ...]) -> QImage | None:
        """Return the input as a picture; None if there is none."""
        source = self._picture.find()
        return self._picture.image(source, page[0] if page else 0) if source else None

    def _list_stages(self, scores: AttentionScores) -> None:
        """List the stages; one that is an operand leads to it."""
        self._listed = scores
        while (item := self._stages.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        for row, stage in enumerate(scores.stages):
            title = f"{stage.name}   {stage.operand}" if stage.operand else stage.name
            span = (
                f"{format_brief(stage.low)} … {format_brief(stage.high)}"
                if stage.low is not None and stage.high is not None
                else "nothing finite"
            )
            if stage.operand:
                link = QPushButton(title)
                link.setProperty("role", "link")
                link.setToolTip(f"Select what gives operand {stage.operand}, and show it")
                link.clicked.connect(partial(self._go_to_stage, stage.operand))
                self._stages.addWidget(link, row, 0, Qt.AlignmentFlag.AlignLeft)
            texts = (title, format_shape(stage.shape), span)
            for column, text in list(enumerate(texts))[bool(stage.operand) :]:
                label = plain_label("", "mono" if column == 0 else "mono2")
                label.setText(text)
                if column:
                    label.setAlignment(
                        Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
                    )
                self._stages.addWidget(label, row, column)
        self._widen_stages()

    def _widen_stages(self) -> None:
        """Beside the pictures, give the stages the width of their columns."""
        beside = self._body.direction() == QBoxLayout.Direction.LeftToRight
        columns = self._stages.sizeHint().width() + _SCROLL_BAR
        self._stages_area.setMinimumWidth(columns if beside else 0)

    def _go_to_stage(self, operand: str, *_: object) -> None:
        self.session.show_producer(operand)

    def _show_texts(self, scores: AttentionScores) -> None:
        if scores is not self._listed:
            self._list_stages(scores)
        self.verdict.setText(_verdict(scores))
        tokens = ""
        if scores.block != (1, 1):
            tokens = (
                f" An element is the largest of {scores.block[0]}×{scores.block[1]} weights."
            )
        if self._rollout is not None:
            blocks = "blocks of this grid" if self._is_windowed else "blocks"
            tokens += f" At the right: rollout of all {blocks} up to this one."
        places = self._key_places
        beside = places.beside if places is not None else ()
        share = (
            f"; above it is the share of {places.name(beside[0])}"
            if places and len(beside) == 1
            else ""
        )
        hidden = self.heads.hidden
        if hidden:
            shown = scores.shape[1] - hidden
            tokens += f" Only the first {shown} of {shown + hidden} heads have pictures."
        self.caption.setText(
            f"A head is scaled to its own largest weight{share}.{tokens}{self._note}"
        )
        queries = self._queries
        query = queries.name(self.query.value()) if queries is not None else ""
        place = queries.place(self.sample.value(), self.query.value()) if queries else None
        cell = f" ({place[-2]}, {place[-1]})" if place is not None else ""
        self._query_text = f"query {query}{cell}"
        self.value.setText(self._query_text)

    # Slots

    @Slot()
    def _on_graph_changed(self) -> None:
        self._graph = self.session.graph
        self._scores = None
        self._is_new, self._note = True, ""
        self._forget_places()
        with QSignalBlocker(self.chosen):
            self.chosen.clear()
            for attention in self.session.attentions.found:
                self.chosen.addItem(attention.operator)
        for field in (self.sample, self.query):
            with QSignalBlocker(field):
                field.setMaximum(0)  # and with it the value
        count = len(self.session.attentions.found)
        self.set_suffix(str(count) if count else "")
        self._on_selected(self.session.selected)

    @Slot(object)
    def _on_selected(self, operator: str) -> None:
        """Show the attention of the selected operator, if it is part of one."""
        graph = self.session.graph
        if graph is None or not operator or operator == self.chosen.currentText():
            return
        outputs = {operand.name for operand in graph.operator(operator).outputs}
        for place, attention in enumerate(self.session.attentions.found):
            parts = {attention.weights, attention.scores, attention.output}
            if attention.operator == operator or not outputs.isdisjoint(parts):
                self.chosen.setCurrentIndex(place)
                self.refresh()
                return

    @Slot(int)
    def _on_chosen(self, _place: int) -> None:
        attention = self.attention
        if attention is not None and attention.operator != self.session.selected:
            self.session.select(attention.operator)
        self.refresh()

    @Slot(int)
    def _on_shown(self, _place: int) -> None:
        self._head = self.shown.currentData()
        self._show()

    @Slot(object)
    def _on_recalled(self, operand: str) -> None:
        graph = self._graph
        if graph is not None and any(each.name == operand for each in graph.input_operands):
            self._show()

    @Slot(int, float, float)
    def _on_head_chosen(self, head: int, _across: float, down: float) -> None:
        self._head = head
        with QSignalBlocker(self.shown):
            self.shown.setCurrentIndex(self.shown.findData(head))
        if down >= 0 and self.tiles.currentIndex() == 0 and self._scores is not None:
            self.query.setValue(int(down * self._scores.shape[2]))
        self._show()

    @Slot(int, int)
    def _on_place_chosen(self, row: int, column: int) -> None:
        """Pick the query at a cell of the keys."""
        queries, keys = self._queries, self._key_places
        if queries is None or queries.grid is None or keys is None or keys.grid is None:
            return
        at = _scaled((row, column), keys.grid, queries.grid)
        page = self._page(queries, self.sample.value(), self.query.value())
        sample, query = queries.token_at((*page, *at))
        self._pick(sample, query)

    @Slot(int)
    def _on_token_chosen(self, key: int) -> None:
        scores = self._scores
        if scores is not None and scores.shape[2] == scores.shape[3]:
            self._pick(self.sample.value(), key)

    def _pick(self, sample: int, query: int) -> None:
        with QSignalBlocker(self.sample):
            self.sample.setValue(sample)
        with QSignalBlocker(self.query):
            self.query.setValue(query)
        self.refresh()

    @Slot(str)
    def _on_hovered(self, text: str) -> None:
        self.value.setText(f"{self._query_text} · {text}" if text else self._query_text)

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        wide = event.size().width() >= _WIDE
        direction = QBoxLayout.Direction
        self._body.setDirection(direction.LeftToRight if wide else direction.TopToBottom)
        roomy = wide or event.size().height() >= _ROOMY
        self._stages_area.setFixedHeight(_STAGES if roomy else _LEAST_STAGES)
        self._widen_stages()
        super().resizeEvent(event)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()


def _combo(name: str, tip: str) -> QComboBox:
    found = QComboBox()
    found.setAccessibleName(name)
    found.setToolTip(tip)
    return found


def _spin(name: str, tip: str) -> SpinBox:
    found = SpinBox()
    found.setMaximum(0)
    found.setAccessibleName(name)
    found.setToolTip(tip)
    found.setKeyboardTracking(False)
    found.setFixedWidth(_SPIN_WIDTH)
    return found


def _scaled(
    place: tuple[int, ...], grid: tuple[int, int], other: tuple[int, int]
) -> tuple[int, int]:
    """Return the cell of another grid over the same picture."""
    row, column = place
    return row * other[0] // grid[0], column * other[1] // grid[1]


def _without_empty(tiles: Array) -> Array:
    """Cut off rows and columns without keys, which are outside the query's window."""
    present = ~np.isnan(tiles[0])
    rows, columns = np.flatnonzero(present.any(1)), np.flatnonzero(present.any(0))
    if not rows.size:
        return tiles
    return tiles[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _have_same_tokens(one: TokenPlaces, other: TokenPlaces) -> bool:
    """Whether two attentions mix the same tokens; those in windows by their common grid."""
    if one.is_windowed or other.is_windowed:
        plans = one.plan, other.plan
        if one.is_windowed != other.is_windowed or None in plans:
            return False
        shapes = {plan.folded_shape for plan in plans if plan is not None}
        return len(shapes) == 1
    return (one.samples, one.count) == (other.samples, other.count)


def _verdict(scores: AttentionScores) -> str:
    found = scores.difference
    if found is None:
        return f"Not compared with operand {scores.output}: {scores.note}."
    if found.unlike:
        return f"≠ operand {scores.output}: {found.unlike}"
    largest = f"largest difference {format_brief(found.largest, 2)}"
    if found.agrees:
        return f"✓ equals operand {scores.output}, {largest}"
    return f"≠ differs from operand {scores.output}, {largest}"
