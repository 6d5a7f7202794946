"""Plants faults in operators while PyTorch computes the truth, and counts what is explained.

``python -m reasons --seeds 20`` prints a table; the exit status is 1 below the bound.
"""
