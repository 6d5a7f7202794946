"""Recipes, which recompute the outputs of a step with the same kernel and seed."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.backends import SUPPLIED, is_fused, make_kernels
from engine.runtime.executor import run_kernel
from engine.store import Recipe
from engine.values import materialise_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.runtime import RuntimeOperator
    from engine.runtime.executor import RunInputs, StepRecord
    from engine.runtime.kernel import Kernel
    from engine.values import Value

__all__ = ["WEIGHT", "make_recipe"]

WEIGHT: Final = "pnnx.Attribute"
"""Type whose value belongs to the model and takes no memory."""


def make_recipe(
    operators: Sequence[RuntimeOperator],
    records: Mapping[str, StepRecord],
    kernels: Mapping[int, Kernel],
    inputs: RunInputs,
    index: int,
) -> Recipe:
    """Make the recipe of a step that has just run.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
        In execution order.
    records : mapping of str to StepRecord
        By operator.
    kernels : mapping of int to Kernel
        By operator index.
    inputs : RunInputs
    index : int
        Of the operator.
    """
    operator = operators[index]
    record = records[operator.name]
    producers = [(operand.producer, operand.name) for operand in operator.inputs]
    sources = tuple(
        (records[producer.name].outputs, name)
        for producer, name in producers
        if producer is not None
        and producer.name in records
        and name in records[producer.name].outputs
    )
    compute = None
    again = record.kernel not in {"", SUPPLIED} and not is_fused(record.kernel)
    if again and operator.type != WEIGHT:
        given = {name: record.outputs[name] for name in record.overrides}
        compute = partial(_recompute, kernels, operator, record.kernel, inputs.seed, given)
    return Recipe(index, sources, _last_use(operator), compute)


def _recompute(
    kernels: Mapping[int, Kernel],
    operator: RuntimeOperator,
    name: str,
    seed: int,
    given: Mapping[str, Value],
    arguments: Sequence[Value],
) -> dict[str, Value]:
    """Compute the outputs of an operator with the kernel of that name."""
    if operator.random:
        results, _ = run_kernel(operator, None, arguments, operator.generator(seed))
    else:
        kernel = kernels[operator.index]
        results, _ = run_kernel(operator, kernel, arguments, None)
        if kernel.name != name:  # another kernel, which may round differently
            kernel = make_kernels({operator.name: name}, (operator,))[0]
            results, _ = run_kernel(operator, kernel, arguments, None)
    names = (operand.name for operand in operator.outputs)
    return dict(zip(names, materialise_all(results), strict=True)) | dict(given)


def _last_use(operator: RuntimeOperator) -> float:
    """Return the index of an output's last consumer; the model's outputs have none."""
    consumers = [each for operand in operator.outputs for each in operand.consumers]
    if any(consumer.is_output for consumer in consumers):
        return math.inf
    return max((consumer.index for consumer in consumers), default=operator.index)
