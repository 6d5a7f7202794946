"""The boxes and edges that the graph view draws of a model.

Nothing here changes while the model runs; see `state` for that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF

from engine.collector import collector_paused
from engine.text import format_dtype, format_shape
from kuiper_studio.families import Family, family_of
from kuiper_studio.graph_view.text import split_expression
from kuiper_studio.layout import Layout, LayoutRequest, Orientation, layout
from kuiper_studio.theme import Theme

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator

__all__ = [
    "BOX_HEIGHT",
    "TEXT_SCALE",
    "Box",
    "Edge",
    "Fonts",
    "Scene",
    "lay_out",
    "make_scene",
]

BOX_HEIGHT: Final = 94.0
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
class Box:
    """One operator.

    Attributes
    ----------
    index : int
        In execution order; also its index among the boxes.
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
    """

    source: int
    target: int
    operand: str
    shape: str
    dtype: str
    count: int = 1

    def text(self, shape: str = "", *, skip: bool = False) -> str:
        """Text on the edge; `shape` is the computed one where there is one."""
        text = shape or self.shape
        if self.count > 1:
            text = f"{self.count} × {text}" if text else f"{self.count} ×"
        return f"{self.operand} · {text}" if skip and text else text


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The boxes and edges of one model.

    Attributes
    ----------
    boxes : tuple of Box
    edges : tuple of Edge
    index : dict of str to int
        Box of an operator.
    edges_of : tuple of tuple of int
        Edges that touch each box.
    edge_widths : tuple of float
        Of the texts on the edges.
    graph : RuntimeGraph or None
        The model; None for no model.
    """

    boxes: tuple[Box, ...] = ()
    edges: tuple[Edge, ...] = ()
    index: dict[str, int] = field(default_factory=dict)
    edges_of: tuple[tuple[int, ...], ...] = ()
    edge_widths: tuple[float, ...] = ()
    graph: RuntimeGraph | None = None

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


def lay_out(
    scene: Scene, orientation: Orientation, cancelled: Callable[[], bool] | None = None
) -> Layout:
    """Lay a scene out, see `layout`; on any thread, while the cycle collector rests."""
    with collector_paused():  # of many edges it took half of the time
        return layout(scene.request(orientation), cancelled)


@cache
def fonts() -> Fonts:
    """Return the fonts, which do not depend on the theme."""
    return Fonts()


def make_scene(graph: RuntimeGraph) -> Scene:
    """Build the scene of a model; needs a QGuiApplication to measure texts."""
    faces = fonts()
    type_ruler, name_ruler = _Ruler(faces.type), _Ruler(faces.name)
    label_ruler, detail_ruler = _Ruler(faces.label), _Ruler(faces.detail)
    character = detail_ruler.width("0")
    boxes = []
    for operator in graph.operators:
        family = family_of(operator.type)
        head = label_ruler.width(family.label) + detail_ruler.width(str(operator.index))
        shape = format_shape(_shown_shape(operator), drop_batch=True)
        needed = max(
            head + _GLYPH_ROOM + LEFT_INSET + RIGHT_INSET,
            type_ruler.width(operator.type) + LEFT_INSET + RIGHT_INSET,
            name_ruler.width(operator.name) + LEFT_INSET + RIGHT_INSET,
            len(shape) * character + DETAIL_LEFT + _DETAIL_RIGHT,
        )
        width = _grown(needed)
        room = width - LEFT_INSET - RIGHT_INSET
        detail_room = int((width - DETAIL_LEFT - _DETAIL_RIGHT) / character)
        boxes.append(
            Box(
                operator.index,
                operator.name,
                operator.type,
                family,
                width,
                type_ruler.elided(operator.type, room),
                name_ruler.elided(operator.name, room),
                _pending_lines(operator, detail_room),
                detail_room,
                _shown_operand(operator),
            )
        )
    edges = _make_edges(graph)
    edge_ruler = _Ruler(faces.edge)
    touching: list[list[int]] = [[] for _ in boxes]
    for number, edge in enumerate(edges):
        touching[edge.source].append(number)
        touching[edge.target].append(number)
    return Scene(
        tuple(boxes),
        edges,
        {box.name: box.index for box in boxes},
        tuple(map(tuple, touching)),
        tuple(edge_ruler.width(edge.text()) for edge in edges),
        graph,
    )


def _grown(width: float) -> float:
    steps = -(-(width - _LEAST_WIDTH) // _WIDTH_STEP)
    return min(_LEAST_WIDTH + max(0.0, steps) * _WIDTH_STEP, _MOST_WIDTH)


def _make_edges(graph: RuntimeGraph) -> tuple[Edge, ...]:
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
        operand = operands[name]
        source = operand.producer
        if source is not None:
            shape, dtype = (
                format_shape(operand.shape, drop_batch=True),
                format_dtype(operand.dtype),
            )
            edges.append(Edge(source.index, target, name, shape, dtype, count))
    return tuple(edges)


def _shown_operand(operator: RuntimeOperator) -> str:
    operands: Sequence[RuntimeOperand] = operator.outputs or operator.inputs
    return operands[0].name if operands else ""


def _shown_shape(operator: RuntimeOperator) -> tuple[int | str | None, ...] | None:
    operands: Sequence[RuntimeOperand] = operator.outputs or operator.inputs
    return operands[0].shape if operands else None


def _pending_lines(operator: RuntimeOperator, room: int) -> tuple[str, str]:
    if "expr" in operator.params:
        # Constants are None, numbers or flags, not texts.
        head, tail = split_expression(str(operator.params["expr"]))
        return _cut(head, room), _cut(tail, room)
    operands = operator.outputs or operator.inputs
    if not operands:
        return "", ""
    shape, dtype = (
        format_shape(operands[0].shape, drop_batch=True),
        format_dtype(operands[0].dtype),
    )
    more = f"+{len(operands) - 1}" if len(operands) > 1 else ""
    return _cut(shape, room), " ".join(filter(None, (dtype, more)))


def _cut(text: str, room: int) -> str:
    """Elide in the middle by characters: the font is monospaced."""
    if len(text) <= room:
        return text
    tail = (room - 1) // 2
    return f"{text[: room - 1 - tail]}…{text[len(text) - tail :]}"
