"""Operators of ONNX that pnnx keeps under their own names, such as ``GatherElements``.

pnnx converts most operators of ONNX to PyTorch's types. The others keep ONNX's type. Their
attributes become parameters, and so do some constant inputs (`axes`, `pads`, ...). Optional
inputs that a model omits are missing from the file, so a later operand has the position of an
earlier one. Dtype and shape then show which input it is.

The reference is ONNX's specification of each operator. These files translate arguments and call
the code of PyTorch's operators where both have the same function.
"""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
