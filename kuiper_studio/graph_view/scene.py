"""The boxes and edges that the graph view draws of a model.

Nothing here changes while the model runs; see `state` for that.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF

from engine.collector import collector_paused
from engine.text import format_count, format_dtype, format_shape
from kuiper_studio.families import FAMILIES, Family, family_of
from kuiper_studio.graph_view.folding import short_name
from kuiper_studio.graph_view.text import split_expression
from kuiper_studio.layout import LayoutRequest, Orientation, layout
from kuiper_studio.layout.nested import LevelLayouts, Nest, NestedRequest, lay_out_nested
from kuiper_studio.theme import Theme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from kuiper_studio.layout import Layout
    from kuiper_studio.layout.groups import Group

__all__ = [
    "BOX_HEIGHT",
    "CARD_HEIGHT",
    "TEXT_SCALE",
    "Box",
    "BoxMaker",
    "Card",
    "Edge",
    "Fonts",
    "Frame",
    "Scene",
    "assembled",
    "lay_out",
    "make_edge",
    "make_edges",
    "make_scene",
]

BOX_HEIGHT: Final = 94.0
CARD_HEIGHT: Final = 50.0
"""Height of the box of a closed group."""
LEFT_INSET: Final = 11.0
RIGHT_INSET: Final = 9.0
DETAIL_LEFT: Final = 52.0
"""Left edge of the lines beside the thumbnail."""
# Fonts have whole pixel sizes, and the design needs halves: texts are measured at twice
# their size and painted at half scale.
TEXT_SCALE: Final = 2.0

_LEAST_WIDTH: Final = 112.0
_MOST_WIDTH: Final = 200.0
_WIDTH_STEP: Final = 8.0
_GLYPH_ROOM: Final = 28.0  # state glyph and its distance from index and label
_DETAIL_RIGHT: Final = 7.0
_LEAST_CARD: Final = 130.0
_CARD_INSET: Final = 10.0
_FRAME_ROOM: Final = 150.0  # of the texts behind an open group's name
_CHIP_ROOM: Final = 16.0  # around the text of the chip with the number of blocks
_MOST_STRIP: Final = 12  # operators in a closed group's strip of families


class Fonts:
    """Fonts of boxes and edges, at TEXT_SCALE times their size."""

    def __init__(self) -> None:
        self.label = self._scaled(Theme.ui_font, 9, 700)
        self.label.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, 0.5 * TEXT_SCALE)
        self.type = self._scaled(Theme.ui_font, 11.5, 600)
        self.name = self._scaled(Theme.mono_font, 10.5)
        self.detail = self._scaled(Theme.mono_font, 9.5)
        self.word = self._scaled(Theme.mono_font, 9.5, 700)
        self.edge = self._scaled(Theme.mono_font, 9)

    @staticmethod
    def _scaled(make: object, pixels: float, weight: int = 400) -> QFont:
        font: QFont = make(pixels * TEXT_SCALE, weight)  # type: ignore[operator]
        # Hinting would make a text's width depend on the zoom.
        font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
        return font


class _Ruler:
    """Measures texts, each once; monospaced texts by counting characters."""

    def __init__(self, font: QFont) -> None:
        self._metrics = QFontMetricsF(font)
        self._widths: dict[str, float] = {}
        self._sign: float | None = None  # width of every ASCII character
        sign, others = self.width("0"), map(self.width, "iWm.(~")
        self._sign = sign if all(width == sign for width in others) else None

    def width(self, text: str) -> float:
        if self._sign is not None and text.isascii() and text.isprintable():
            return len(text) * self._sign
        known = self._widths.get(text)
        if known is None:
            known = self._widths[text] = self._metrics.horizontalAdvance(text) / TEXT_SCALE
        return known

    def elided(self, text: str, room: float) -> str:
        if self.width(text) <= room:
            return text
        return self._metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, room * TEXT_SCALE)


@dataclass(frozen=True, slots=True)
class Card:
    """What the box of a closed group shows beside its name.

    Attributes
    ----------
    group : Group
    strip : tuple of str
        Colour tokens of the families of its operators, in order; of many some.
    count_text : str
        How many operators it has.
    chip : str
        ``×12`` for a stack of equal blocks, else ``""``.
    """

    group: Group
    strip: tuple[str, ...]
    count_text: str
    chip: str


@dataclass(frozen=True, slots=True)
class Frame:
    """An open group.

    Attributes
    ----------
    group : Group
    title : str
        Its name, elided.
    """

    group: Group
    title: str


@dataclass(frozen=True, slots=True)
class Box:
    """One operator, or a closed group.

    Attributes
    ----------
    index : int
        Of the operator in execution order, or of the first of the group.
    name, type : str
    family : Family
    width : float
    shown_type, shown_name : str
        Elided in the middle to the width.
    pending : (str, str)
        The lines of a box without a value: expression, or shape and dtype.
    room : int
        Number of characters in such a line.
    operand : str
        The operand whose value the box shows; ``""`` for none.
    card : Card or None
        Of a closed group, whose `name` is the group's and whose `type` is empty.
    """

    index: int
    name: str
    type: str
    family: Family
    width: float
    shown_type: str
    shown_name: str
    pending: tuple[str, str]
    room: int
    operand: str
    card: Card | None = None

    @property
    def height(self) -> float:
        """Height of the box, which does not depend on its state."""
        return BOX_HEIGHT if self.card is None else CARD_HEIGHT


@dataclass(frozen=True, slots=True)
class Edge:
    """The edge of one operand to one consumer.

    Attributes
    ----------
    source, target : int
        Indices of boxes.
    operand : str
    shape : str
        As exported, batch 1 left out.
    dtype : str
    count : int
        How often it is an input of the consumer.
    producer : int
        The operator that makes the operand; another one than `source` in a folded scene.
    bundled : int
        Number of operands that it stands for, from or to a closed group.
    """

    source: int
    target: int
    operand: str
    shape: str
    dtype: str
    count: int = 1
    producer: int = -1
    bundled: int = 1

    def text(self, shape: str = "", *, skip: bool = False) -> str:
        """Text on the edge; `shape` is the computed one where there is one."""
        if self.bundled > 1:
            return format_count(self.bundled, "operand")
        text = shape or self.shape
        if self.count > 1:
            text = f"{self.count} × {text}" if text else f"{self.count} ×"
        return f"{self.operand} · {text}" if skip and text else text


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The boxes and edges of one model, or of what is visible of it.

    Attributes
    ----------
    boxes : tuple of Box
        In execution order; each operator is in one of them.
    edges : tuple of Edge
    index : dict of str to int
        Box of an operator, or of the closed group that it is in.
    edges_of : tuple of tuple of int
        Edges that touch each box.
    edge_widths : tuple of float
        Of the texts on the edges.
    graph : RuntimeGraph or None
        The model; None for no model.
    starts : ndarray of shape (N,), int64
        First operator of each box.
    frames : tuple of Frame
        Open groups, an outer one before those in it.
    nest : Nest or None
        Boxes in frames; None where every operator is a box of its own.
    known_layouts : LevelLayouts or None
        Of frames, from scenes before.
    """

    boxes: tuple[Box, ...] = ()
    edges: tuple[Edge, ...] = ()
    index: dict[str, int] = field(default_factory=dict)
    edges_of: tuple[tuple[int, ...], ...] = ()
    edge_widths: tuple[float, ...] = ()
    graph: RuntimeGraph | None = None
    starts: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    frames: tuple[Frame, ...] = ()
    nest: Nest | None = None
    known_layouts: LevelLayouts | None = None

    @property
    def operator_count(self) -> int:
        """Number of operators of the model."""
        return 0 if self.graph is None else len(self.graph.operators)

    @property
    def is_folded(self) -> bool:
        """Whether a box stands for several operators."""
        return len(self.boxes) != self.operator_count

    def box_of(self, operator: int) -> int:
        """Return the box of an operator, by its index."""
        return int(np.searchsorted(self.starts, operator, "right")) - 1

    def frame_of(self, group: Group) -> int | None:
        """Return the frame of a group; None for one that is not open."""
        frames = (number for number, each in enumerate(self.frames) if each.group == group)
        return next(frames, None)

    def frame_around(self, operator: int) -> int | None:
        """Return the innermost frame around an operator, by its index; None for none."""
        around = [
            number
            for number, each in enumerate(self.frames)
            if each.group.first <= operator <= each.group.last
        ]
        return around[-1] if around else None

    def boxes_of(self, operators: Iterable[int]) -> frozenset[int]:
        """Return the boxes of operators, by their indexes."""
        known = np.fromiter(operators, np.intp)
        found = np.searchsorted(self.starts, known, "right") - 1
        return frozenset(found.tolist())

    def request(self, orientation: Orientation) -> LayoutRequest:
        """Ask for a layout of the scene, whose edges are the layout's lines."""
        components, generations = ((), ()) if self.graph is None else self.graph.structure
        return LayoutRequest(
            components,
            generations,
            tuple((edge.source, edge.target, edge.operand) for edge in self.edges),
            tuple((box.width, BOX_HEIGHT) for box in self.boxes),
            orientation,
            label_widths=self.edge_widths,
        )

    def nested_request(self, nest: Nest, orientation: Orientation) -> NestedRequest:
        """Ask for a layout of boxes in frames."""
        return NestedRequest(
            nest,
            tuple((edge.source, edge.target, edge.operand) for edge in self.edges),
            tuple((box.width, box.height) for box in self.boxes),
            orientation,
            self.edge_widths,
        )


def lay_out(
    scene: Scene, orientation: Orientation, cancelled: Callable[[], bool] | None = None
) -> Layout:
    """Lay a scene out, see `layout`; on any thread, while the cycle collector rests."""
    with collector_paused():  # of many edges it took half of the time
        if scene.nest is None:
            return layout(scene.request(orientation), cancelled)
        request = scene.nested_request(scene.nest, orientation)
        return lay_out_nested(request, cancelled, scene.known_layouts)


@cache
def fonts() -> Fonts:
    """Return the fonts, which do not depend on the theme."""
    return Fonts()


class BoxMaker:
    """Makes boxes; needs a QGuiApplication to measure texts."""

    def __init__(self) -> None:
        faces = fonts()
        self._type, self._name = _Ruler(faces.type), _Ruler(faces.name)
        self._label, self._detail = _Ruler(faces.label), _Ruler(faces.detail)
        self._edge = _Ruler(faces.edge)
        self._character = self._detail.width("0")

    def box(self, operator: RuntimeOperator) -> Box:
        """Make the box of an operator."""
        family = family_of(operator.type)
        head = self._label.width(family.label) + self._detail.width(str(operator.index))
        shape = _shown_shape(operator)
        needed = max(
            head + _GLYPH_ROOM + LEFT_INSET + RIGHT_INSET,
            self._type.width(operator.type) + LEFT_INSET + RIGHT_INSET,
            self._name.width(operator.name) + LEFT_INSET + RIGHT_INSET,
            len(shape) * self._character + DETAIL_LEFT + _DETAIL_RIGHT,
        )
        width = _grown(needed)
        room = width - LEFT_INSET - RIGHT_INSET
        detail_room = int((width - DETAIL_LEFT - _DETAIL_RIGHT) / self._character)
        return Box(
            operator.index,
            operator.name,
            operator.type,
            family,
            width,
            self._type.elided(operator.type, room),
            self._name.elided(operator.name, room),
            _pending_lines(operator, detail_room),
            detail_room,
            _shown_operand(operator),
        )

    def card(self, group: Group, operators: Sequence[RuntimeOperator]) -> Box:
        """Make the box of a closed group."""
        title = short_name(group)
        count_text = format_count(group.size, "operator")
        chip = f"×{len(group.children)}" if group.is_stack else ""
        beside = self._detail.width(chip) + _CHIP_ROOM if chip else 0.0
        needed = max(
            _LEAST_CARD,
            self._name.width(title) + 2 * _CARD_INSET + _GLYPH_ROOM,
            self._detail.width(count_text) + 2 * _CARD_INSET + _GLYPH_ROOM + beside,
        )
        width = min(needed, _MOST_WIDTH)
        block = group.children[0] if group.is_stack else group
        families = [
            family_of(operator.type) for operator in operators[block.first : block.last + 1]
        ]
        counts = Counter(family.label for family in families)
        del counts[FAMILIES["io"].label]
        labels = [label for label, _ in counts.most_common(1)]
        main = next((each for each in families if each.label in labels), families[0])
        places = np.linspace(0, len(families) - 1, min(len(families), _MOST_STRIP))
        strip = tuple(families[round(place)].token for place in places.tolist())
        return Box(
            group.first,
            group.name,
            "",
            main,
            width,
            "",
            self._name.elided(title, width - 2 * _CARD_INSET - _GLYPH_ROOM / 2),
            ("", ""),
            0,
            "",
            Card(group, strip, count_text, chip),
        )

    def frame(self, group: Group) -> Frame:
        """Make the frame of an open group."""
        return Frame(group, self._name.elided(short_name(group), _MOST_WIDTH))

    def frame_width(self, group: Group) -> float:
        """Return the width of what is written on the frame of an open group."""
        return self._name.width(self.frame(group).title) + _FRAME_ROOM

    def edge_widths(self, edges: Sequence[Edge]) -> tuple[float, ...]:
        """Measure the texts of edges."""
        return tuple(self._edge.width(edge.text()) for edge in edges)


def make_scene(graph: RuntimeGraph) -> Scene:
    """Build the scene of a model, every operator in a box of its own."""
    maker = BoxMaker()
    boxes = tuple(maker.box(operator) for operator in graph.operators)
    names = tuple(box.name for box in boxes)
    return assembled(graph, maker, boxes, make_edges(graph), names)


def assembled(
    graph: RuntimeGraph,
    maker: BoxMaker,
    boxes: tuple[Box, ...],
    edges: tuple[Edge, ...],
    names: tuple[str, ...],
) -> Scene:
    """Put boxes and edges together; see `Scene`."""
    touching: list[list[int]] = [[] for _ in boxes]
    for number, edge in enumerate(edges):
        touching[edge.source].append(number)
        touching[edge.target].append(number)
    starts = np.array([box.index for box in boxes], np.intp)
    sizes = np.diff(starts, append=len(graph.operators))
    homes = np.repeat(np.arange(len(boxes)), sizes).tolist()
    return Scene(
        boxes,
        edges,
        dict(zip(names, homes, strict=True)),
        tuple(map(tuple, touching)),
        maker.edge_widths(edges),
        graph,
        starts,
    )


def make_edge(
    source: int, target: int, operand: RuntimeOperand, count: int, bundled: int
) -> Edge:
    """Make an edge; see `Edge`."""
    producer = operand.producer
    return Edge(
        source,
        target,
        operand.name,
        *_operand_texts(operand.shape, operand.dtype),
        count,
        producer.index if producer is not None else source,
        bundled,
    )


@lru_cache(maxsize=4096)  # large graphs have few shapes
def _operand_texts(
    shape: tuple[int | str | None, ...] | None, dtype: np.dtype[Any] | str | None
) -> tuple[str, str]:
    return format_shape(shape, drop_batch=True), format_dtype(dtype)


def _grown(width: float) -> float:
    steps = -(-(width - _LEAST_WIDTH) // _WIDTH_STEP)
    return min(_LEAST_WIDTH + max(0.0, steps) * _WIDTH_STEP, _MOST_WIDTH)


def make_edges(graph: RuntimeGraph) -> tuple[Edge, ...]:
    """Make the edges between operators that are all in boxes of their own."""
    counts: dict[tuple[str, int], int] = {}
    operands: dict[str, RuntimeOperand] = {}
    for operator in graph.operators:
        for operand in operator.inputs:
            if operand.producer is not None:
                key = (operand.name, operator.index)
                counts[key] = counts.get(key, 0) + 1
                operands[operand.name] = operand
    edges = []
    for (name, target), count in counts.items():
        source = operands[name].producer
        if source is not None:
            edges.append(make_edge(source.index, target, operands[name], count, 1))
    return tuple(edges)


def _shown_operand(operator: RuntimeOperator) -> str:
    operands: Sequence[RuntimeOperand] = operator.outputs or operator.inputs
    return operands[0].name if operands else ""


def _shown_shape(operator: RuntimeOperator) -> str:
    operands: Sequence[RuntimeOperand] = operator.outputs or operator.inputs
    if not operands:
        return format_shape(None, drop_batch=True)
    return _operand_texts(operands[0].shape, operands[0].dtype)[0]


def _pending_lines(operator: RuntimeOperator, room: int) -> tuple[str, str]:
    if "expr" in operator.params:
        # Constants are None, numbers or flags, not texts.
        head, tail = split_expression(str(operator.params["expr"]))
        return _cut(head, room), _cut(tail, room)
    operands = operator.outputs or operator.inputs
    if not operands:
        return "", ""
    shape, dtype = _operand_texts(operands[0].shape, operands[0].dtype)
    more = f"+{len(operands) - 1}" if len(operands) > 1 else ""
    return _cut(shape, room), " ".join(filter(None, (dtype, more)))


def _cut(text: str, room: int) -> str:
    """Elide in the middle by characters: the font is monospaced."""
    if len(text) <= room:
        return text
    tail = (room - 1) // 2
    return f"{text[: room - 1 - tail]}…{text[len(text) - tail :]}"
