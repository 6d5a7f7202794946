"""Real and imaginary parts of complex numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.layers.complex_numbers import complex_of, conj, imag, polar, real, view_as_real
from engine.provenance.arithmetic import format_index
from engine.provenance.records import Breakdown, Factor, Kind, Terms
from engine.provenance.rules.elementwise import locate_elementwise
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.records import Box

__all__ = ["explain_part", "locate_part"]

_CODES = (real, imag, view_as_real)

locates(complex_of, conj, polar)(locate_elementwise)


@explains(*_CODES)
def explain_part(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Return the part of the complex number; an element of an operand only where it is real."""
    input = call.array("input")
    is_pair = call.layer_code is view_as_real
    place = index[:-1] if is_pair else index
    is_imaginary = bool(index[-1]) if is_pair else call.layer_code is imag
    number = complex(input.value[place])
    value = number.imag if is_imaginary else number.real
    element = f"{input.name}{format_index(place)}"
    is_complex = input.dtype.kind == "c"
    part = f"{'Im' if is_imaginary else 'Re'} {element}" if is_complex else element
    factor = Factor(
        f"{'Im' if is_imaginary else 'Re'} {input.name}" if is_complex else input.name,
        not is_complex,
        np.array([place], np.int64).reshape(1, -1),
        np.array([value]),
    )
    terms = Terms((factor,), factor.values, (1,), ("term",))
    return Breakdown(Kind.MOVE, f"y{format_index(index)} = {part}", terms, value, 0.0)


@locates(*_CODES)
def locate_part(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the same positions."""
    return {call.array("input").name: box[:-1] if call.layer_code is view_as_real else box}
