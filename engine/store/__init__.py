"""The values of a session: all of them, or as many as a limit allows.

A `ValueStore` has the outputs of every step by operand name and counts what they take. With a
limit its `ActivationCache` evicts old values; they are recomputed when they are read, by the
`Recipe` of their step. Reading metadata computes nothing, materialises no lazy array and takes
no lock.

The store knows neither sessions nor operators: a recipe says how a step is computed.
"""

from __future__ import annotations

from engine.store.memory_use import MemoryUse, sizes_of
from engine.store.outputs import Recipe, StepOutputs
from engine.store.value_store import ValueStore

__all__ = ["MemoryUse", "Recipe", "StepOutputs", "ValueStore", "sizes_of"]
