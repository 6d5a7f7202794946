"""Resolves the annotations of registered code, for every version of Python and NumPy.

There are two kinds of aliases in annotations. An assigned name is the type itself. A ``type``
statement makes an alias object; ``npt.NDArray`` is one with NumPy 2.5 on Python 3.12. Only this
module replaces alias objects by their types.
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
    """Role of an argument by its annotation: operand, weight or either."""

    OPERAND = "operand"
    WEIGHT = "weight"


OperandOf: TypeAlias = Annotated[T, Role.OPERAND]
"""An operand that need not be a tensor, such as `OperandOf[Value]`."""
WeightOf: TypeAlias = Annotated[T, Role.WEIGHT]
"""A module's attribute, such as `WeightOf[Array | None]`; an operand of a plain function."""

# The backport is not the class that Python has from 3.12 on.
_ALIASES: Final = (
    typing_extensions.TypeAliasType,
    getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType),
)


def parameters_of(code: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the arguments of a function in order, with unresolved annotations.

    Parameters
    ----------
    code : callable
        Its annotations may use undefined names.
    """
    if sys.version_info >= (3, 14):  # annotations are evaluated lazily
        import annotationlib

        form = annotationlib.Format.FORWARDREF
        signature = inspect.signature(code, annotation_format=form)
    else:
        signature = inspect.signature(code)
    return list(signature.parameters.values())


def hints_of(code: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function by argument, resolved and without aliases.

    Parameters
    ----------
    code : callable

    Returns
    -------
    dict of str to object
        Unions are flat, and no item of a tuple is an alias. ``Any`` replaces an alias that
        contains itself, is written as a string, or has an open type parameter.

    Raises
    ------
    Exception
        Any exception of evaluating the annotations; NameError for an unknown name.
    """
    return {name: _resolve_aliases(hint) for name, hint in typing.get_type_hints(code).items()}


def roles_of(code: Callable[..., Any]) -> dict[str, Role]:
    """Return the roles of a function's arguments, by their annotations.

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
    """Return whether an annotation is ``X | Y``, ``Union`` or ``Optional``."""
    return get_origin(hint) in {Union, UnionType}


def _resolve_aliases(hint: Any, within: tuple[object, ...] = ()) -> Any:
    """Replace the aliases in `hint`; `within` are the aliases that enclose it."""
    origin = get_origin(hint)
    alias = origin if isinstance(origin, _ALIASES) else hint
    if alias in within or isinstance(hint, (str, typing.ForwardRef, typing.TypeVar)):
        return Any
    if isinstance(alias, _ALIASES):
        arguments = [_resolve_aliases(argument, within) for argument in get_args(hint)]
        return _resolve_aliases(_resolve_alias(alias, arguments), (*within, alias))
    if origin is Annotated:
        return _resolve_aliases(get_args(hint)[0], within)
    if origin is tuple or is_union(hint):
        items = tuple(_resolve_aliases(item, within) for item in get_args(hint))
        return GenericAlias(tuple, items) if origin is tuple else reduce(or_, items)
    return hint


def _resolve_alias(alias: Any, arguments: Sequence[Any]) -> Any:
    """Return the type of an alias, with `arguments` for its type parameters."""
    value = alias.__value__
    given = dict(zip(alias.__type_params__, arguments, strict=False))
    if isinstance(value, typing.TypeVar):
        return given.get(value, Any)
    open_types = getattr(value, "__parameters__", ())
    return value[tuple(given.get(each, Any) for each in open_types)] if open_types else value
