"""Kuiper Studio: a desktop debugger for neural networks in PNNX form."""
