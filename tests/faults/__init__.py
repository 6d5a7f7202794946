"""Plants faults into networks and counts how often a comparison names where they are.

Run with ``python -m faults FOLDER [NAME ...]``; the folder holds NAME.pt, a traced network,
NAME.pnnx.param with its .bin, and NAME.inputs.npz with its inputs.
"""
