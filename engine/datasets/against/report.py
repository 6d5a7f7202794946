"""What a data set through two models gives: ``against.json``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from engine.datasets.against.distributions import quantile
from engine.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.datasets.against.study import AgainstStudy
    from engine.datasets.studies import Arrays
    from engine.values import Array

__all__ = ["REPORT", "against_facts"]

REPORT: Final = "against.json"
_SHARES: Final = {"median": 0.5, "p90": 0.9, "p99": 0.99}


def against_facts(
    study: AgainstStudy, arrays: Arrays, name_of: Callable[[int], str]
) -> dict[str, Any]:
    """Return the merged arrays of a study as strict JSON can hold them.

    Parameters
    ----------
    study : AgainstStudy
    arrays : dict of str to ndarray
    name_of : callable
        Returns the name of an input.
    """
    inputs, failed, tops, same, labelled, right, right_reference = arrays["counts"].tolist()
    rows = [_row_facts(study, arrays, place, name_of) for place in range(len(study.rows))]
    ends = [row for row in rows if row["is_output"]] or rows[-1:]
    return {
        "reference": study.other.title,
        "inputs": inputs,
        "failed": failed,
        "rows": rows,
        # Of the outputs, or of the last row where none of them matches.
        "worst": sorted(
            (
                worst | {"operand": row["operand"]}
                for row in ends
                for worst in row["worst"]
                if worst["relative"]
            ),
            key=lambda each: -_number(each["relative"]),
        )[: max(len(row["worst"]) for row in ends)],
        "top1": {  # where the first output has a counterpart
            "inputs": tops,
            "same": same,
            "differing": [
                {"input": index, "name": name_of(index)}
                for index in arrays["differing"].tolist()
            ],
        },
        "accuracy": {
            "labelled": labelled,
            "right": right,
            "right_reference": right_reference,
        }
        if labelled
        else None,
    }


def _number(value: float | str) -> float:
    return float(value)


def _row_facts(
    study: AgainstStudy, arrays: Arrays, place: int, name_of: Callable[[int], str]
) -> dict[str, Any]:
    row = study.rows[place]
    compared = int(arrays["compared"][place])
    finite = compared - int(arrays["infinite"][place])
    means = arrays["sums"][place] / max(finite, 1)
    largest, least = arrays["largest"][place], arrays["least"][place]
    relative, nmse = arrays["histogram"][place]
    numbers = {
        "relative": {
            "mean": float(means[0]),
            "max": float(largest[0]),
            **_quantiles(relative, float(largest[0])),
        },
        # The larger the error, the smaller the ratio: p90 is what nine of ten inputs exceed.
        "snr_db": {
            "min": _decibels(float(largest[1])),
            **{name: _decibels(x) for name, x in _quantiles(nmse, float(largest[1])).items()},
        },
        "max_abs": {"mean": float(means[2]), "max": float(largest[2])},
        "cosine": {"min": float(least[3])},
    }
    return {
        "operator": row.operator,
        "type": row.type,
        "operand": row.operand,
        "reference": row.reference,
        "matched_by": row.matched_by,
        "is_output": row.is_output,
        "compared": compared,
        "not_compared": int(arrays["not_compared"][place]),
        "infinite": int(arrays["infinite"][place]),
        **({name: plain(each) for name, each in numbers.items()} if compared else {}),
        "worst": [
            {"input": index, "name": name_of(index), "relative": plain(value)}
            for index, value in zip(
                arrays["worst_inputs"][place].tolist(),
                arrays["worst_values"][place].tolist(),
                strict=True,
            )
            if index >= 0
        ],
    }


def _quantiles(counts: Array, largest: float) -> dict[str, float]:
    """Return quantiles of a histogram; the middle of its last bin may lie above all values."""
    return {name: min(quantile(counts, share), largest) for name, share in _SHARES.items()}


def _decibels(nmse: float) -> float:
    if math.isnan(nmse) or nmse < 0:
        return math.nan
    return -10 * math.log10(nmse) if nmse > 0 else math.inf
