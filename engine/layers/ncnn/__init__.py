"""The layers of ncnn in NumPy, a second opinion beside ncnn's own numbers.

They translate parameters and delegate to the layers that PyTorch's operators have, where there
are any. Operands have no batch axis: (C, H, W), (H, W) or (W,). A type of ncnn that is missing
here, or one with parameters that raise `NotInNumpyError`, is left to ncnn alone.

`meanings` imports the modules, when the first model of ncnn is opened.
"""

from __future__ import annotations
