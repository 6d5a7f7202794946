"""Reproducers: some operators as a small model, with data and a check.

The folder's layout::

    README.md                 a description, and how to check it
    reproducer.pnnx.param     the operators, their constants, inputs and outputs
    reproducer.pnnx.bin       their weights, copied byte by byte
    inputs.npz                the inputs, by operand
    expected.npz              the expected outputs, by operand
    check.py                  runs the pair with NumPy and the installed libraries, and compares

`extraction` makes the graph, `writing` the folder. `check_script`, with
`numpy_operators` pasted in, is the text of ``check.py``: it is never imported here, and needs
only NumPy.
"""

from __future__ import annotations

from engine.reproducer.extraction import output_names
from engine.reproducer.writing import write_reproducer

__all__ = ["output_names", "write_reproducer"]
