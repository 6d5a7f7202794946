"""The values of a session, all or within a memory limit.

A `ValueStore` has the outputs of every step by operand name and counts their memory. With a
limit its `ActivationCache` evicts old values; the `Recipe` of their step recomputes them when
they are read. Reading metadata computes nothing, materialises no lazy array and takes no lock.

The store knows neither sessions nor operators: recipes compute the steps.
"""

from __future__ import annotations

from engine.store.memory_use import MemoryUse, sizes_of
from engine.store.outputs import Recipe, StepOutputs
from engine.store.value_store import ValueStore

__all__ = ["MemoryUse", "Recipe", "StepOutputs", "ValueStore", "sizes_of"]
