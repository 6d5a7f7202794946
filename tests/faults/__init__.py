"""Plants faults into networks and counts how well a comparison finds them.

Run with ``python -m faults FOLDER [NAME ...]``; the folder holds the files that ``python -m
faults.networks`` and ``python -m benchmarks.networks`` write. It counts how often a comparison
names the right operator and the right first reason, and how many origins it reports where there
is no fault.
"""
