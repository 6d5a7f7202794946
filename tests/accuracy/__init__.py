"""Measures the accuracy of all kernels of element-wise functions.

``PYTHONPATH=tests python -m accuracy`` prints one table: a row for each kernel of each
function, with the largest error in units in the last place of float32, by range of the input.
``tests/engine/backends/test_accuracy.py`` limits the errors to `measure.FEW`.
"""
