"""What the annotations of registered code say, the same on every Python and with every NumPy.

An annotation may be an alias, and there are two kinds: an assigned name is what it stands for,
while a ``type`` statement makes an object of its own, as ``npt.NDArray`` is with NumPy 2.5 on
Python 3.12. Here, and only here, the latter are replaced by what they stand for, so that nobody
else meets them.
"""

from __future__ import annotations

import inspect
import sys
import typing
from enum import Enum
from functools import reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import typing_extensions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["OperandOf", "Role", "WeightOf", "hints_of", "is_union", "parameters_of", "roles_of"]

T = TypeVar("T")


class Role(Enum):
    """Where a file has an argument as a rule, said by the argument's annotation."""

    OPERAND = "operand"
    WEIGHT = "weight"


OperandOf: TypeAlias = Annotated[T, Role.OPERAND]
"""An operand that may be something else than a tensor too, such as `OperandOf[Value]`."""
WeightOf: TypeAlias = Annotated[T, Role.WEIGHT]
"""A module's attribute, such as `WeightOf[Array | None]`; an operand of a plain function."""

# The backport is another class than the one that Python has from 3.12 on.
_ALIASES: Final = (
    typing_extensions.TypeAliasType,
    getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType),
)


def parameters_of(code: Callable[..., Any]) -> list[inspect.Parameter]:
    """Arguments of a function, in order; their annotations are not to be looked at here.

    Parameters
    ----------
    code : callable
        Its annotations may name what does not exist.
    """
    if sys.version_info >= (3, 14):  # annotations are evaluated when they are asked for
        import annotationlib

        form = annotationlib.Format.FORWARDREF
        signature = inspect.signature(code, annotation_format=form)
    else:
        signature = inspect.signature(code)
    return list(signature.parameters.values())


def hints_of(code: Callable[..., Any]) -> dict[str, Any]:
    """Annotations of a function by argument, resolved and without aliases.

    Parameters
    ----------
    code : callable

    Returns
    -------
    dict of str to object
        A union has no unions in it, and no item of a tuple is an alias. ``Any`` stands where an
        alias contains itself, is written as a string, or leaves a type open.

    Raises
    ------
    Exception
        Whatever evaluating the annotations raises; NameError where a name does not exist.
    """
    return {name: _unaliased(hint) for name, hint in typing.get_type_hints(code).items()}


def roles_of(code: Callable[..., Any]) -> dict[str, Role]:
    """Roles that the annotations of a function give to its arguments.

    Parameters
    ----------
    code : callable

    Returns
    -------
    dict of str to Role
        Of the arguments that are annotated `OperandOf` or `WeightOf`.

    Raises
    ------
    Exception
        As for `hints_of`.
    """
    hints = typing.get_type_hints(code, include_extras=True)
    return {
        name: role
        for name, hint in hints.items()
        for role in getattr(hint, "__metadata__", ())
        if isinstance(role, Role)
    }


def is_union(hint: object) -> bool:
    """Whether an annotation is ``X | Y``, ``Union`` or ``Optional``."""
    return get_origin(hint) in {Union, UnionType}


def _unaliased(hint: Any, within: tuple[object, ...] = ()) -> Any:
    """`hint` with what its aliases stand for; `within` are those that are being replaced."""
    origin = get_origin(hint)
    alias = origin if isinstance(origin, _ALIASES) else hint
    if alias in within or isinstance(hint, (str, typing.ForwardRef, typing.TypeVar)):
        return Any
    if isinstance(alias, _ALIASES):
        arguments = [_unaliased(argument, within) for argument in get_args(hint)]
        return _unaliased(_value_of(alias, arguments), (*within, alias))
    if origin is Annotated:
        return _unaliased(get_args(hint)[0], within)
    if origin is tuple or is_union(hint):
        items = tuple(_unaliased(item, within) for item in get_args(hint))
        return GenericAlias(tuple, items) if origin is tuple else reduce(or_, items)
    return hint


def _value_of(alias: Any, arguments: Sequence[Any]) -> Any:
    """What an alias stands for, with `arguments` in the place of its type parameters."""
    value = alias.__value__
    given = dict(zip(alias.__type_params__, arguments, strict=False))
    if isinstance(value, typing.TypeVar):
        return given.get(value, Any)
    open_types = getattr(value, "__parameters__", ())
    return value[tuple(given.get(each, Any) for each in open_types)] if open_types else value
