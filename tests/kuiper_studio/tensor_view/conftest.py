"""Panes and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from kuiper_studio.tensor_view import TensorPane

if TYPE_CHECKING:
    from PySide6.QtGui import QColor
    from PySide6.QtWidgets import QWidget


@pytest.fixture
def shown(qtbot):
    """A function that shows a widget at a size."""

    def show(widget: QWidget, width: int, height: int) -> QWidget:
        qtbot.addWidget(widget)
        widget.resize(width, height)
        widget.show()
        qtbot.waitExposed(widget)
        return widget

    return show


@pytest.fixture
def pane(shown, theme) -> TensorPane:
    """A pane of the size that the window gives it."""
    return shown(TensorPane(theme), 820, 414)


@pytest.fixture
def signed() -> np.ndarray:
    """64 channels of both signs; channel 5 is all zeros."""
    value = np.random.default_rng(2).normal(size=(1, 64, 56, 56)).astype(np.float32)
    value[0, 5] = 0
    return value


@pytest.fixture
def color_at():
    """A function that reads the colour of a widget at a place."""

    def read(widget: QWidget, x: float, y: float) -> QColor:
        return widget.grab().toImage().pixelColor(round(x), round(y))

    return read
