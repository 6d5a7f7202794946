"""Explains an operator's type, its arguments and their values in the model."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QLabel, QWidget
from typing_extensions import override

from kuiper_studio.item_models import explained_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PySide6.QtCore import QEvent

    from engine.layers.notes import OperatorNote
    from engine.runtime import RuntimeOperator
    from kuiper_studio.item_models import ExplainedArgument
    from kuiper_studio.theme import Theme

__all__ = ["NoteView"]

_MARKS: Final = re.compile(r"``(.+?)``|`(.+?)`")
_MONO: Final = "font-family: 'JetBrains Mono'; font-size: 11px"
_MOST_TYPES: Final = 8
_MAY_BREAK: Final = "\u200b"  # a blank without width
_LEAST_WIDTH: Final = 160  # pixels; the panel around it decides


class NoteView(QLabel):
    """The note on an operator as text, with a link to PyTorch's page.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._operator: RuntimeOperator | None = None
        self._note: OperatorNote | None = None
        self._heights: dict[int, int] = {}  # by width; a layout asks for the same ones often
        self.setObjectName("operatorNote")
        self.setProperty("role", "note")
        self.setAccessibleName("About the operator's type")
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setOpenExternalLinks(True)
        self.linkHovered.connect(self.setToolTip)
        theme.changed.connect(self._refresh)

    @property
    def note(self) -> OperatorNote | None:
        """The shown note."""
        return self._note

    def show_operator(self, operator: RuntimeOperator | None) -> None:
        """Explain an operator, or nothing."""
        self._operator = operator
        self._note = operator.note if operator is not None else None
        self._refresh()

    def _refresh(self) -> None:
        found, operator = self._note, self._operator
        self._heights.clear()
        if found is None or operator is None:
            self.clear()
            return
        self.setText("".join(self._paragraphs(found, operator)))

    def _paragraphs(self, found: OperatorNote, operator: RuntimeOperator) -> Iterator[str]:
        yield _paragraph(_marked(found.summary or _nothing_known(found)))
        for text in found.details:
            yield _paragraph(self._colored(_marked(text), "text2"))
        if found.reference:
            yield _paragraph(self._caption("In PyTorch "), self._link(found))
        for argument in explained_arguments(operator, found):
            yield self._argument(argument)
        for result in found.returns:
            gives = self._colored(_marked(result), "text2")
            yield _paragraph(self._caption("Returns "), gives)
        if found.same:
            shown = [*found.same[:_MOST_TYPES]]
            if len(found.same) > _MOST_TYPES:
                shown.append(f"and {len(found.same) - _MOST_TYPES} more")
            types = self._mono(", ".join(shown), "text2")
            yield _paragraph(self._caption("Same code as "), types)

    def _argument(self, argument: ExplainedArgument) -> str:
        """Format an argument: name and value in one line, type and meaning below."""
        note = argument.note
        head = self._mono(argument.name, "text", bold=True)
        if argument.value:
            head += f" {self._mono(argument.value, 'text')}"
        elif note.default not in {"", "None"}:
            head += f" {self._mono(note.default, 'text3')} {self._caption('by default')}"
        lines = [self._colored(_marked(note.accepts), "text3")] if note.accepts else []
        if note.meaning:
            lines.append(self._colored(_marked(note.meaning), "text2"))
        return _paragraph(head, "".join(f"<br>{text}" for text in lines))

    def _link(self, found: OperatorNote) -> str:
        # A name has no blanks: it may go on in the next line behind a dot or an underscore.
        broken = re.sub(r"(?<=[._])(?=\w)", _MAY_BREAK, found.reference)
        name = self._mono(broken, "link" if found.url else "text")
        if not found.url:
            return name
        return f'<a href="{html.escape(found.url)}" style="text-decoration: none">{name}</a>'

    def _mono(self, text: str, token: str, *, bold: bool = False) -> str:
        return self._styled(f"{_MONO}{'; font-weight: 700' if bold else ''}", text, token)

    def _caption(self, text: str) -> str:
        return self._styled("font-size: 11px", text, "text3")

    def _styled(self, style: str, text: str, token: str) -> str:
        color = self._theme.color(token).name()
        return f'<span style="{style}; color: {color}">{html.escape(text)}</span>'

    def _colored(self, markup: str, token: str) -> str:
        return f'<span style="color: {self._theme.color(token).name()}">{markup}</span>'

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        # A label would lay out its text in several widths, of which none is the panel's.
        return QSize(_LEAST_WIDTH, self.heightForWidth(max(self.width(), _LEAST_WIDTH)))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(_LEAST_WIDTH, 0)

    @override
    def heightForWidth(self, width: int) -> int:
        if width not in self._heights:
            self._heights[width] = super().heightForWidth(width)
        return self._heights[width]

    @override
    def changeEvent(self, event: QEvent) -> None:
        self._heights.clear()  # the font may be another one
        super().changeEvent(event)


def _marked(text: str) -> str:
    """Return a docstring's text as HTML, with code and arguments marked."""
    return _MARKS.sub(rf'<span style="{_MONO}">\1\2</span>', html.escape(text, quote=False))


def _paragraph(*parts: str) -> str:
    return f'<p style="margin: 0 0 6px 0">{"".join(parts)}</p>'


def _nothing_known(found: OperatorNote) -> str:
    if found.known:
        return "This layer has no docstring, so there is no description."
    return "There is no layer for this type, so there is no description."
