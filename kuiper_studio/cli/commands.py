"""Commands that need no window, and exit statuses."""

from __future__ import annotations

from typing import Final

__all__ = ["COMMANDS", "DIFFERENT", "DONE", "FAILED"]

COMMANDS: Final = {
    "info": "List operators, shapes, parameters and cost of a model.",
    "run": "Run a model once and write its outputs.",
    "dump": "Run a model and write the tensors of every operator.",
    "check": "Compare every backend with NumPy, operator by operator.",
    "precision": "Simulate float16, bfloat16 or int8, operator by operator.",
    "convert": "Convert a TorchScript or ONNX file to PNNX, with pnnx.",
    "compare": "Compare a run with a reference and find where they begin to differ.",
    "sweep": "Run a data set through a model and gather what its operands hold.",
    "recorder": "Write a script that records a reference with another library.",
    "reproduce": "Write some operators as a small model, with data and a check.",
    "render": "Draw the graph of a model, or write its layout as data.",
    "ops": "List or explain the operator types that have a layer.",
}
DONE, DIFFERENT, FAILED = 0, 1, 2
