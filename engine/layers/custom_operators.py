"""Operators of PyTorch's extensions, whose arguments have no names in the file.

``torchvision::nms`` becomes ``pnnx.custom_op.torchvision.nms`` with the parameters and
operand names ``arg_0``, ``arg_1``, … in the order of its schema.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from engine.errors import ParameterError
from engine.layers.layer import OperatorCall
from engine.layers.registry import register

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["register_extension"]

Function = TypeVar("Function", bound="Callable[..., Any]")


def register_extension(name: str) -> Callable[[Function], Function]:
    """Register a function for an operator of an extension.

    Parameters
    ----------
    name : str
        As the extension writes it, e.g. ``"torchvision::nms"``.

    Returns
    -------
    decorator
        For a function with the schema's arguments in order. It is registered under `name` and
        under pnnx's name for it.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def compute(*operands: Any, call: OperatorCall, **arguments: Any) -> Any:
            return function(*_order_arguments(operands, call, arguments))

        # Bind the signature of `compute`, not that of the wrapped function.
        del compute.__wrapped__
        compute.__annotations__ = {"operands": Any, "call": OperatorCall, "arguments": Any}
        compute.implements = function  # type: ignore[attr-defined]  # for the notes
        register(name)(function)
        register(f"pnnx.custom_op.{name.replace('::', '.')}")(compute)
        return function

    return decorate


def _order_arguments(
    operands: tuple[Any, ...], call: OperatorCall, arguments: dict[str, Any]
) -> list[Any]:
    """Order all arguments by number; operands without a number fill the gaps."""
    by_place = {_parse_place(name): value for name, value in arguments.items()}
    loose = []
    for name, value in zip(call.input_names, operands, strict=True):
        if name.startswith("arg_"):
            by_place[_parse_place(name)] = value
        else:
            loose.append(value)
    count = len(by_place) + len(loose)
    rest = iter(loose)
    return [by_place[n] if n in by_place else next(rest) for n in range(count)]


def _parse_place(name: str) -> int:
    number = name.removeprefix("arg_")
    if not number.isdecimal() or len(number) > 3:
        raise ParameterError(name, f"{name!r} is not an argument number")
    return int(number)
