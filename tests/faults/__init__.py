"""Plants faults into networks and counts what a comparison says of them.

Run with ``python -m faults FOLDER [NAME ...]``; the folder holds the files that
``python -m faults.networks`` and ``python -m benchmarks.networks`` write. It counts how often
the right operator and the right first reason are named, and origins where no fault is.
"""
