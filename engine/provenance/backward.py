"""How the gradient of one element goes back through an operator, in float64.

A rule of `engine.provenance.back` takes the gradient by an operator's output and returns those
by its inputs. Together with the rules of `engine.provenance.rules`, which say what an element
consists of, they give the weight that each position of an input has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.layers.exactness import is_elementwise
from engine.layers.expression import Expression
from engine.provenance import back
from engine.provenance.back.elementwise import follow_function
from engine.provenance.back.moving import give_back
from engine.provenance.call import NoBreakdownError
from engine.provenance.table import find_gradient, find_moved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.slopes import Gradient

__all__ = ["go_back"]

_RULES: Final = back  # imported to be registered


def go_back(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Return the gradients by an operator's inputs.

    Parameters
    ----------
    call : Call
    gradient : ndarray of float64
        By the output; of its shape.

    Returns
    -------
    mapping of str to ndarray of float64
        By operand; one that is missing has no influence.

    Raises
    ------
    NoBreakdownError
        If there is no rule for the operator, or not for these arguments.
    """
    layer = call.layer
    rule = find_gradient(layer)
    if rule is None and find_moved(layer) is not None:
        rule = give_back
    if rule is None and (is_elementwise(layer) or isinstance(layer, Expression)):
        rule = follow_function
    if rule is None:
        raise NoBreakdownError("no rule says what passes through")
    return rule(call, gradient)
