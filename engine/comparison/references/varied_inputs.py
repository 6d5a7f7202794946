"""Makes a second input of a first one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from engine.values import Array, Value

__all__ = ["vary"]

_SEED: Final = 0
_LARGEST: Final = 2.0  # times the first one, as an element of the second input
_OFFSET: Final = 0.5  # of the typical size of the elements
_PART: Final = 1 << 16  # elements at a time, to take little memory


def vary(value: Value) -> Array:
    """Return an input of the same shape and dtype that a model takes, too.

    Real numbers change their places, sizes and signs, so that nothing is positive, zero or one
    throughout. Integers and Booleans, which may be indices, lengths or masks, only change
    places. If all are equal, half of them become 0, or True.

    Parameters
    ----------
    value : ndarray
    """
    array, rng = np.asarray(value), np.random.default_rng(_SEED)
    if array.size < (1 if array.dtype.kind in "fc" else 2):
        return array
    found = rng.permutation(array.reshape(-1))
    if array.dtype.kind in "fc":
        _change(found, rng)
    elif array.dtype.kind in "iub" and (found == found[0]).all():
        # The first one stays: of a mask, something must be left.
        found[1:][rng.random(found.size - 1) < 0.5] = not found[0]
    return found.reshape(array.shape)


def _change(flat: Array, rng: np.random.Generator) -> None:
    some = flat[:: -(-flat.size // _PART)]
    sizes = np.abs(some[np.isfinite(some) & (some != 0)])
    typical = float(np.median(sizes)) if sizes.size else 1.0
    for start in range(0, flat.size, _PART):
        part = flat[start : start + _PART]
        finite = np.isfinite(part)  # infinities are masks
        factors, offsets = rng.uniform(-1, 1, part.size), rng.standard_normal(part.size)
        with np.errstate(over="ignore", invalid="ignore"):
            changed = _LARGEST * part * factors + _OFFSET * typical * offsets
            part[finite] = changed[finite].astype(part.dtype)
