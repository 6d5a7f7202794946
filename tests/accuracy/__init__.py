"""How near element-wise results are to what is right, by everything that computes them.

``PYTHONPATH=tests python -m accuracy`` prints one table: a row for each function and each
kernel of it, with the largest error in units in the last place of float32, by range of
the input. ``tests/engine/backends/test_accuracy.py`` holds them to `measure.FEW`.
"""
