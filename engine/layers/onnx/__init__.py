"""Operators of ONNX that pnnx keeps under their own names, such as ``GatherElements``.

What pnnx knows how to say in PyTorch's words it says so; the rest keeps ONNX's type, its
attributes become parameters, and so do some inputs that are constants (`axes`, `pads`, ...).
The inputs that a model leaves out are simply missing from the file, so that a later operand
may stand in an earlier one's place: what it is must then be told by its dtype and shape.

The reference here is ONNX's own specification of each operator. Computed elsewhere already
are the functions that PyTorch has too; these files only translate arguments where they can.
"""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
