"""Plants faults in operators, whose truth PyTorch computes, and counts right explanations.

``python -m reasons --seeds 20`` prints a table; the exit status is 1 below the bound.
"""
