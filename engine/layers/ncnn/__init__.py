"""The layers of ncnn in NumPy, to check ncnn's own results.

They translate parameters and call the layers of PyTorch's operators where these exist. Operands
have no batch axis: (C, H, W), (H, W) or (W,). If a type is missing here, or its parameters
raise `NotInNumpyError`, only ncnn computes it.

`meanings` imports the modules, when the first model of ncnn is opened.
"""

from __future__ import annotations
