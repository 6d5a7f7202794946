"""Reproducers: some operators of a model as a pair of their own, with data and a check.

The folder's layout::

    README.md                 what it is, and how to check it
    reproducer.pnnx.param     the operators, the constants that they take, inputs and outputs
    reproducer.pnnx.bin       their weights, copied byte by byte
    inputs.npz                what the operators take, by operand
    expected.npz              what they are to give, by operand
    check.py                  runs the pair by whatever is installed, and compares

`extraction` makes the graph, `writing` the folder. `check_script` is the text of ``check.py``:
it is never imported here, and needs nothing but NumPy.
"""

from __future__ import annotations

from engine.reproducer.writing import write_reproducer

__all__ = ["write_reproducer"]
