"""Notes on operator types, made from the docstrings and signatures of registered code.

The docstring beside the code is the only place that states what an operator computes, what its
arguments mean, and its name in PyTorch. The command line lists the notes, and the window shows
the note of the selected operator. Docstrings give texts only; the annotation says whether an
argument is an operand, a weight or a parameter.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from engine.layers.annotations import Role, hints_of, parameters_of, roles_of
from engine.layers.binding import NO_EFFECT, describe_annotation, takes_array
from engine.layers.docstrings import Docstring, Field, read_docstring
from engine.layers.glossary import COMMON
from engine.layers.layer import Layer, OperatorCall
from engine.layers.references import page_of, reference_of
from engine.layers.registry import Registration, layer_table, registration
from engine.ncnn.types import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

__all__ = ["ArgumentKind", "ArgumentNote", "OperatorNote", "note", "remove_marks"]

ArgumentKind: TypeAlias = Literal["parameter", "attribute", "operand"]
_Part: TypeAlias = Literal["function", "build", "forward"]

# Operators that the graph itself executes.
_GRAPHS_OWN: Final = {
    "pnnx.Input": "Input of the model.",
    "pnnx.Output": "Output of the model.",
    "ncnn.Input": "Input of the model.",
    "ncnn.Output": "Output of the model: a blob that no layer takes.",
}

# ": ``torch.nn.ReLU`` and its kin", the end of most summaries, repeats the reference.
_NAMES_IT: Final = re.compile(
    r"[:,] (?:ONNX ``"
    r"|``(?:torch|nn|F|Tensor|torchvision|torchaudio|QFunctional|prim)(?:\.|::)).*"
)
_LIKE: Final = re.compile(r"\bas ``([\w.:]+)``")
_AS_IN: Final = re.compile(r"As in ``([\w.:]+)``(?:[.:,;]|$)")

# Default meaning of an argument that is registered as unused.
_UNUSED: Final = "No effect."


@dataclass(frozen=True, slots=True)
class ArgumentNote:
    """Note on an argument.

    Attributes
    ----------
    name : str
        As the file writes it.
    kind : str
        ``parameter``, ``attribute`` or ``operand``: where the file usually has it. Most
        parameters may also be operands.
    accepts : str
        ``int or tuple of int``, ``ndarray of shape (O, C / groups, K...)``.
    meaning : str
        May be empty.
    default : str
        In Python's notation; ``""`` for a required argument.
    """

    name: str
    kind: ArgumentKind
    accepts: str
    meaning: str
    default: str


@dataclass(frozen=True, slots=True)
class OperatorNote:
    """Note on an operator type.

    Attributes
    ----------
    type : str
    summary : str
        What it computes, in one sentence; ``""`` if unknown. Here and in the other texts
        ``` ``code`` ``` and ``` `argument` ``` are marked as in a docstring.
    details : tuple of str
        Paragraphs: the formula, sizes, special cases.
    reference : str
        PyTorch's name for it; ``""`` if it has none.
    url : str
        Address of its documentation; ``""`` if unknown.
    arguments : tuple of ArgumentNote
    returns : tuple of str
        The results, in order.
    same : tuple of str
        Other types that the same code computes, sorted.
    file : Path or None
        The user's file that computes it; None for the engine's own and for unknown types.
    known : bool
        Whether there is a layer for it.
    """

    type: str
    summary: str = ""
    details: tuple[str, ...] = ()
    reference: str = ""
    url: str = ""
    arguments: tuple[ArgumentNote, ...] = ()
    returns: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    file: Path | None = None
    known: bool = False


def note(operator_type: str) -> OperatorNote:
    """Make the note on an operator type.

    Parameters
    ----------
    operator_type : str
        As the file writes it.

    Returns
    -------
    OperatorNote
        For a type without a layer it has only PyTorch's name.
    """
    found = registration(operator_type) or _layer_of_ncnn(operator_type)
    if found is None:
        return OperatorNote(
            operator_type,
            summary=_GRAPHS_OWN.get(operator_type, ""),
            reference=reference_of(operator_type),
            url=page_of(operator_type),
            known=operator_type in _GRAPHS_OWN,
        )
    alike = (name for name, other in layer_table().items() if other.target is found.target)
    same = tuple(sorted(name for name in alike if name != operator_type))
    read = _read(found.target)
    return OperatorNote(
        operator_type,
        summary=_summary(read.summary),
        details=(*read.details, *_randomness(found)),
        reference=reference_of(operator_type),
        url=page_of(operator_type, same),
        arguments=(*_arguments(operator_type, found.target, read), *_find_unused(found, read)),
        returns=tuple(_result(field) for field in read.returns),
        same=same,
        file=found.file,
        known=True,
    )


def _layer_of_ncnn(operator_type: str) -> Registration | None:
    """Return the layer of a type of ncnn, which the registry does not contain."""
    if not operator_type.startswith(PREFIX) or operator_type in _GRAPHS_OWN:
        return None
    # Imported here: most models are of PNNX.
    from engine.layers.ncnn.meanings import ncnn_table

    return ncnn_table({}).get(operator_type)


def remove_marks(text: str) -> str:
    """Return a note's text without the marks of code and arguments."""
    return text.replace("`", "")


def _target_of(operator_type: str) -> Callable[..., Any] | None:
    found = registration(operator_type)
    return found.target if found is not None else None


@lru_cache(maxsize=2048)
def _read(target: Callable[..., Any]) -> Docstring:
    """Return the docstring of registered code, completed by a similar one that it refers to."""
    read = read_docstring(target.__doc__)
    parameters = {name: _complete_text(name, field) for name, field in read.parameters.items()}
    like = _LIKE.search(" ".join([read.summary, *read.details]))
    other = _target_of(_type_of(like[1])) if like is not None else None
    if other is not None and other is not target:
        parameters = {**_read(other).parameters, **parameters}
    return replace(read, parameters=parameters)


def _complete_text(name: str, field: Field) -> Field:
    """Complete an argument's text ``As in `nn.RNN` `` by that docstring's text."""
    like = _AS_IN.match(field.text)
    other = _target_of(_type_of(like[1])) if like is not None else None
    found = _read(other).parameters.get(name) if other is not None else None
    if like is None or found is None:
        return field
    text = f"{found.text} {field.text[like.end() :].strip()}".strip()
    return Field(field.form or found.form, text)


def _type_of(reference: str) -> str:
    """Return the operator type of a name in PyTorch."""
    for long, short in (("torch.nn.functional.", "F."), ("torch.nn.", "nn.")):
        if reference.startswith(long):
            return short + reference.removeprefix(long)
    return reference


def _summary(text: str) -> str:
    """Remove the part of a summary that only names the origin of the operator."""
    clauses = text.removesuffix(".").split("; ")
    kept = [_NAMES_IT.sub("", clause) for clause in clauses if not clause.startswith("as ")]
    sentence = "; ".join(kept)
    return f"{sentence}." if sentence else ""


def _result(field: Field) -> str:
    """Return a result's type and text."""
    head = re.sub(r"\s:\s.*", "", field.form)
    return f"{head}: {field.text}" if field.text else head


def _arguments(
    operator_type: str, target: Callable[..., Any], read: Docstring
) -> Iterator[ArgumentNote]:
    if operator_type.startswith("pnnx.custom_op."):
        target = getattr(target, "implements", target)
    seen: set[str] = set()
    extra: ArgumentKind | None = None
    for code, part in _find_codes(target):
        for argument in _signature(code):
            parameter, name = argument.parameter, argument.parameter.name
            kind = _kind(operator_type, part, argument)
            if parameter.kind is parameter.VAR_KEYWORD:
                extra = kind
            elif name not in seen:
                seen |= {name, f"*{name}"}
                yield _note(argument, kind, read)
    if extra is not None:
        for name, field in read.parameters.items():
            if name not in seen:
                yield ArgumentNote(name, extra, field.form, field.text, "")


def _find_unused(found: Registration, read: Docstring) -> Iterator[ArgumentNote]:
    """Return arguments of a file that have no effect."""
    for name in found.unused:
        accepts = describe_annotation(NO_EFFECT.get(name, Any)).removesuffix(" or None")
        meaning = read.parameters.get(name, Field("", "")).text or COMMON.get(name, _UNUSED)
        yield ArgumentNote(name, "parameter", accepts, meaning, "None")


def _randomness(found: Registration) -> Iterator[str]:
    """Describe the randomness of an operator; nothing if its code takes no generator."""
    for code, _ in _find_codes(found.target):
        if np.random.Generator in _hints(code).values():
            still = [f"``{name}={value}``" for name, value in found.random_unless.items()]
            unless = f", unless {' or '.join(still)}" if still else ""
            yield f"Random: it uses the session's random seed{unless}."


@lru_cache(maxsize=2048)  # cached: annotations are evaluated each time
def _hints(code: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the annotations; empty if a user's code has unreadable ones."""
    try:
        return hints_of(code)
    except Exception:  # noqa: BLE001 - annotations of a user's code may raise anything
        return {}


def _find_codes(target: Callable[..., Any]) -> tuple[tuple[Callable[..., Any], _Part], ...]:
    """Return the functions whose arguments are the operator's."""
    if not (isinstance(target, type) and issubclass(target, Layer)):
        return ((target, "function"),)
    build = target.__init__
    built: tuple[tuple[Callable[..., Any], _Part], ...] = ((build, "build"),)
    return (*(built if build is not object.__init__ else ()), (target.forward, "forward"))


class _Argument(NamedTuple):
    """An argument that a file may have, with its annotation."""

    parameter: inspect.Parameter
    hint: Any
    role: Role | None


@lru_cache(maxsize=2048)  # as above
def _signature(code: Callable[..., Any]) -> tuple[_Argument, ...]:
    """Return the arguments that a file may have."""
    try:
        hints, roles, parameters = hints_of(code), roles_of(code), parameters_of(code)
    except Exception:  # noqa: BLE001 - a user's code; its arguments are omitted
        return ()
    given = (
        _Argument(parameter, hints.get(parameter.name, Any), roles.get(parameter.name))
        for place, parameter in enumerate(parameters)
        if place or parameter.name != "self"
    )
    return tuple(
        argument
        for argument in given
        if argument.hint not in {OperatorCall, np.random.Generator}
    )


def _kind(operator_type: str, part: _Part, argument: _Argument) -> ArgumentKind:
    """Return where a file usually has an argument, by its annotation."""
    parameter = argument.parameter
    if part == "forward":
        return "operand"
    if argument.role is None:
        has_default = parameter.default not in {parameter.empty, None}
        if has_default or not takes_array(argument.hint, only=True):
            return "parameter"
    is_module = operator_type.startswith(("nn.", "pnnx."))
    is_weight = part == "build" or (is_module and argument.role is Role.WEIGHT)
    return "attribute" if is_weight else "operand"


def _note(argument: _Argument, kind: ArgumentKind, read: Docstring) -> ArgumentNote:
    parameter, hint = argument.parameter, argument.hint
    variadic = parameter.kind is parameter.VAR_POSITIONAL
    found = read.parameters.get(f"*{parameter.name}" if variadic else parameter.name)
    required = variadic or parameter.default is parameter.empty
    accepts = describe_annotation(hint)
    if parameter.default is None:
        accepts = accepts.removesuffix(" or None")
    return ArgumentNote(
        parameter.name,
        "operand" if variadic else kind,
        found.form if found is not None and found.form else accepts,
        (found.text if found is not None else "") or _meaning(parameter.name, kind, read),
        "" if required else repr(parameter.default),
    )


def _meaning(name: str, kind: ArgumentKind, read: Docstring) -> str:
    """Return the meaning of an argument without a text of its own."""
    if kind != "parameter":
        return ""
    text = " ".join([read.summary, *read.details])
    said = re.search(rf"``[^`]*\b{name}\b[^`]*``|`{name}`", text)
    return COMMON.get(name, "See above." if said else "")
