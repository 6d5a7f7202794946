"""The tensor view: operands as pictures, bars and numbers.

`TensorView` belongs to the window and follows the session. `TensorPane` is the same without
a session: it shows any value.
"""

from __future__ import annotations

from kuiper_studio.tensor_view.actions import COMMANDS as TENSOR_COMMANDS
from kuiper_studio.tensor_view.element import Element
from kuiper_studio.tensor_view.pane import TensorPane
from kuiper_studio.tensor_view.sides import Side
from kuiper_studio.tensor_view.tensor_view import TensorView

__all__ = ["TENSOR_COMMANDS", "Element", "Side", "TensorPane", "TensorView"]
