"""Bags of rows of a table that is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.layers.embedding_bag import embedding_bag, embedding_bag_traced, pooling_of
from engine.provenance.call import NoBreakdownError, Operand
from engine.provenance.rules.embedding import find_bag, name_of_indices
from engine.provenance.slopes import Gradient, wide
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call


@passes_back(embedding_bag, embedding_bag_traced)
def _bags(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each row of a bag its part; numbers that choose rows have no slope."""
    given, method = call.arguments, pooling_of(call.arguments["mode"])
    if given.get("max_norm") is not None:
        raise NoBreakdownError("rows of limited norm have no slope")
    numbers = call.array(name_of_indices(call)).value.reshape(-1).astype(np.int64)
    table, scales = wide(given["weight"]), given["per_sample_weights"]
    factors = np.ones(len(numbers)) if scales is None else wide(scales).reshape(-1)
    by_table, by_scale = np.zeros(table.shape), np.zeros(len(numbers))
    for number, own in enumerate(gradient):
        places = find_bag(call, number)
        rows = numbers[places]
        if method == "max" and len(rows):
            best = rows[table[rows].argmax(axis=0)]
            np.add.at(by_table, (best, np.arange(len(own))), own)
        elif method == "mean":
            np.add.at(by_table, rows, own / max(1, len(rows)))
        elif method == "sum":
            np.add.at(by_table, rows, np.multiply.outer(factors[places], own))
            by_scale[places] = table[rows] @ own
    found = {}
    for source, part in ((given["weight"], by_table), (scales, by_scale)):
        if isinstance(source, Operand):
            found[source.name] = part.reshape(source.shape)
    return found
