"""Binds an operator of the file to the arguments of its code.

The value of an argument is a parameter (``dim=1``), an attribute (``@weight=(64,3,7,7)f32``) or
an operand, named (``$input=3``) or by position. The names are PyTorch's own. So the signature
of the registered code suffices: it has the arguments, their defaults, and the types of
parameters as annotations. All checks that need no operands happen here, once, when the model
opens.

A parameter that only states that an attribute exists (``bias=True`` beside ``@bias``)
yields to the attribute. Dots in attribute names become underscores
(``@out_proj.weight`` is the argument ``out_proj_weight``). An operand with an unknown name is
bound by position, because pnnx invents some names (``$mask``). An argument annotated
`OperatorCall` receives the call itself; one annotated ``numpy.random.Generator`` receives the
generator of one execution.

Raw ``aten::`` operators have only unnamed operands, including constants. If their order differs
from the order of the code's arguments, register it. An argument of a class's ``__init__`` may
be an operand; then the layer is built once the operand's value is known.

PyTorch has arguments without effect here, such as ``device``. Register them as unused: the file
may have them, but the code does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import takewhile
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    TypeAlias,
    get_args,
    get_origin,
)

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError
from engine.layers.annotations import hints_of, is_union, parameters_of
from engine.layers.layer import Layer, OperatorCall
from engine.layers.places import reason_of
from engine.text import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.random import Generator

    from engine.values import Value

__all__ = [
    "NO_EFFECT",
    "FunctionLayer",
    "Orders",
    "bind",
    "code_of",
    "describe_annotation",
    "takes_array",
]

Orders: TypeAlias = tuple[tuple[str, ...], ...]

_ABSENT = object()
_UNUSED = "_"  # name of an operand without effect

# Arguments of PyTorch for memory, gradients or generators, with their allowed values. Results
# do not depend on them here.
NO_EFFECT: Final[Mapping[str, Any]] = {
    "device": int | str | None,
    "generator": Any,
    "layout": int | str | None,
    "memory_format": int | str | None,
    "non_blocking": bool | None,
    "pin_memory": bool | None,
    "requires_grad": bool | None,
}


@dataclass(frozen=True, slots=True)
class _Signature:
    """Arguments of registered code.

    Attributes
    ----------
    names : tuple of str
        In order, without a method's ``self``, variadic arguments, `call` and `generator`.
    leading : tuple of str
        Arguments that may be passed by position.
    required : frozenset of str
    hints : mapping of str to object
        Resolved annotations.
    defaults : mapping of str to object
    call, generator : str
        Arguments that receive the `OperatorCall` and the random numbers; ``""`` for none.
    variadic : bool
        Whether there is ``*operands``.
    extra : bool
        Whether there is ``**more`` for parameters and attributes of any name.
    """

    names: tuple[str, ...]
    leading: tuple[str, ...]
    required: frozenset[str]
    hints: Mapping[str, Any]
    defaults: Mapping[str, Any]
    call: str
    generator: str
    variadic: bool
    extra: bool


@lru_cache(maxsize=4096)
def _signature_of(code: Callable[..., Any], *, method: bool = False) -> _Signature:
    if code is object.__init__:  # its signature accepts anything
        return _Signature((), (), frozenset(), {}, {}, "", "", variadic=False, extra=False)
    parameters = parameters_of(code)[1 if method else 0 :]
    hints = _hints_of(code)
    call, generator = (
        next((p.name for p in parameters if hints.get(p.name) is kind), "")
        for kind in (OperatorCall, np.random.Generator)
    )
    plain = [
        p
        for p in parameters
        if p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD} and p.name not in {call, generator}
    ]
    by_position = takewhile(lambda p: p in plain and p.kind is not p.KEYWORD_ONLY, parameters)
    return _Signature(
        names=tuple(p.name for p in plain),
        leading=tuple(p.name for p in by_position),
        required=frozenset(p.name for p in plain if p.default is p.empty),
        hints=hints,
        defaults={p.name: p.default for p in plain if p.default is not p.empty},
        call=call,
        generator=generator,
        variadic=any(p.kind is p.VAR_POSITIONAL for p in parameters),
        extra=any(p.kind is p.VAR_KEYWORD for p in parameters),
    )


def _hints_of(code: Callable[..., Any]) -> dict[str, Any]:
    try:
        return hints_of(code)
    except NameError:
        # A user's layer may import the types of its annotations for type checkers only. Then
        # its parameters are not converted.
        return {}
    except Exception as exc:
        name = getattr(code, "__qualname__", code)
        raise LayerError(f"the annotations of {name} cannot be read: {exc}") from exc


def bind(
    target: Callable[..., Any],
    call: OperatorCall,
    random_unless: Mapping[str, Value] | None = None,
    orders: Orders = (),
    unused: Sequence[str] = (),
) -> Layer:
    """Build the layer of an operator from registered code.

    Parameters
    ----------
    target : callable
        A function or a `Layer` class.
    call : OperatorCall
    random_unless : mapping of str to Value, optional
    orders : tuple of tuple of str, optional
        Shortest first.
    unused : sequence of str, optional
        As for `register`, like the two before.

    Returns
    -------
    Layer
        Accepts the operator's inputs in file order, and the generator as its argument
        `generator`.

    Raises
    ------
    ParameterError
        Names the operator, its type and the parameter.
    """
    try:
        if orders and not any(call.input_names):
            call = replace(call, input_names=_names_by_order(orders, len(call.input_names)))
        if unused:
            call = _drop_unused(unused, call)
        if isinstance(target, type) and issubclass(target, Layer):
            return _bind_class(target, call, random_unless or {}, len(unused))
        return _bind_function(target, call, random_unless or {}, len(unused))
    except ParameterError as exc:
        raise _locate_error(exc.parameter, reason_of(exc), call) from exc
    except Exception as exc:
        # A layer may be the user's code. The model must open whatever it raises.
        raise _locate_error("", reason_of(exc), call) from exc


def _locate_error(parameter: str, reason: str, call: OperatorCall) -> ParameterError:
    shapes = [array.shape for array in call.attributes.values()]
    return ParameterError(
        parameter, reason, operator=call.name, operator_type=call.type, shapes=shapes
    )


def _names_by_order(orders: Orders, count: int) -> tuple[str, ...]:
    """Name operands by the shortest order with enough arguments."""
    for names in orders:
        if len(names) >= count:
            return names[:count]
    raise _too_many(count, orders[-1])


def _too_many(count: int, names: Sequence[str]) -> LayerError:
    """Return the error for more operands than a layer has arguments."""
    taken = f" ({', '.join(names)})" if names else ", which takes none"
    are = format_count(count, "operand is", "operands are")
    return LayerError(f"{are} more than this layer takes{taken}")


def _drop_unused(unused: Sequence[str], call: OperatorCall) -> OperatorCall:
    """Remove arguments without effect from a call, after checking their values."""
    for name in call.params.keys() & set(unused):
        _convert_parameter(name, call.params[name], NO_EFFECT.get(name, Any))
    return replace(
        call,
        params={name: value for name, value in call.params.items() if name not in unused},
        input_names=tuple(_UNUSED if name in unused else name for name in call.input_names),
    )


def _bind_function(
    function: Callable[..., Any],
    call: OperatorCall,
    random_unless: Mapping[str, Value],
    unused: int,
) -> Layer:
    signature = _signature_of(function)
    static = _static_arguments(signature, call, taken=_named_inputs(signature, call))
    slots = _operand_slots(signature, call.input_names, static, unused)
    _require(signature.required - static.keys() - set(slots))
    draws = not _is_deterministic(random_unless, signature.defaults, static, slots, call)
    return FunctionLayer(
        function, static, slots, signature.leading, signature.generator, draws=draws
    )


def _bind_class(
    layer_class: type[Layer],
    call: OperatorCall,
    random_unless: Mapping[str, Value],
    unused: int,
) -> Layer:
    build = _signature_of(layer_class.__init__, method=True)
    forward = _signature_of(layer_class.forward, method=True)
    late = {
        name: place
        for place, name in enumerate(call.input_names)
        if name in build.names and name not in forward.names
    }
    static = _static_arguments(build, call, taken=frozenset(late))
    _require(build.required - static.keys() - late.keys())
    names = (_UNUSED if name in late else name for name in call.input_names)
    slots = _operand_slots(forward, tuple(names), {}, unused)
    _require(forward.required - set(slots))
    defaults = {**build.defaults, **forward.defaults}
    places = {place: name for name, place in late.items()}
    known = [places.get(place, slot) for place, slot in enumerate(slots)]
    draws = not _is_deterministic(random_unless, defaults, static, known, call)

    def build_with(operands: Mapping[int, Any]) -> Layer:
        given = {
            name: _convert_parameter(
                name, _unwrap_tensor(operands[place], build.hints[name]), build.hints[name]
            )
            for name, place in late.items()
        }
        return layer_class(**static, **given)

    if not set(late.values()) <= call.constants.keys():
        return _LateLayer(build_with, slots, forward.leading, forward.generator, draws=draws)
    layer = build_with(call.constants)
    if _is_positional(slots, forward.leading) and (draws or not forward.generator):
        layer.generator = forward.generator
        return layer
    return FunctionLayer(
        layer.forward, {}, slots, forward.leading, forward.generator, draws=draws
    )


def _is_deterministic(
    random_unless: Mapping[str, Value],
    defaults: Mapping[str, Any],
    static: Mapping[str, Any],
    slots: Sequence[str],
    call: OperatorCall,
) -> bool:
    """Return whether the code draws no random numbers with the known arguments."""
    known = {name: value for name, value in defaults.items() if name not in slots}
    known.update(static)
    known.update((slots[place], value) for place, value in call.constants.items())
    return any(
        isinstance(known.get(name), (bool, int, float, str)) and known[name] == value
        for name, value in random_unless.items()
    )


def _named_inputs(signature: _Signature, call: OperatorCall) -> frozenset[str]:
    return frozenset(name for name in call.input_names if name in signature.names)


def _static_arguments(
    signature: _Signature, call: OperatorCall, taken: frozenset[str]
) -> dict[str, Any]:
    """Return the arguments from parameters and attributes, checked and converted."""
    attributes = {name.replace(".", "_"): array for name, array in call.attributes.items()}
    static: dict[str, Any] = {signature.call: call} if signature.call else {}
    for name, array in attributes.items():
        if name not in signature.names and not signature.extra:
            raise ParameterError(name, f"attribute {name!r} is not known to this layer")
        static[name] = array
    for name, value in call.params.items():
        if name in taken or name in attributes:
            continue
        if name in signature.names:
            static[name] = _convert_parameter(name, value, signature.hints.get(name, Any))
        elif signature.extra:
            static[name] = value
        else:
            raise ParameterError(
                name,
                f"parameter {name}={_format_value(value)} is not known to this layer, which "
                f"takes {', '.join(signature.names) or 'none'}",
            )
    return static


def _operand_slots(
    signature: _Signature,
    input_names: tuple[str, ...],
    static: Mapping[str, Any],
    unused: int,
) -> list[str]:
    """Return the argument name of each operand; ``""`` for one of ``*operands``.

    After the code's arguments, operands without effect may follow, as many as `unused`.
    """
    named = {name for name in input_names if name in signature.names}
    free = [n for n in signature.names if n not in static and n not in named]
    free += [_UNUSED] * unused
    if signature.variadic:  # *operands is first; arguments after it are keyword-only
        free = []
    slots: list[str] = []
    used: set[str] = set()
    for name in input_names:
        if name == _UNUSED:
            slots.append(_UNUSED)
        elif name in signature.names and name not in used:
            slots.append(name)
            used.add(name)
        elif free:
            slots.append(free.pop(0))
        elif signature.variadic:
            slots.append("")
        else:
            raise _too_many(len(input_names), signature.names)
    return slots


def _is_positional(slots: Sequence[str], leading: tuple[str, ...]) -> bool:
    """Return whether all operands can be passed by position, which is faster."""
    return not any(slots) or tuple(slots) == leading[: len(slots)]


def _require(missing: Iterable[str]) -> None:
    for name in sorted(missing):
        raise ParameterError(name, f"{name!r} is missing")


class FunctionLayer(Layer):
    """A layer whose computation is a plain function.

    Parameters
    ----------
    function : callable
    static : mapping of str to object
        Arguments that are known when the model opens.
    slots : sequence of str
        Argument name of each operand, ``""`` for a variadic one, ``_`` for one without effect.
    leading : tuple of str
        Arguments of the function that may be passed by position.
    generator : str
        Argument that receives the random generator; ``""`` for none.
    draws : bool
        False if the function never draws from it.

    Attributes
    ----------
    target : callable
        `function`.
    static : dict of str to object
    """

    def __init__(
        self,
        function: Callable[..., Any],
        static: dict[str, Any],
        slots: list[str],
        leading: tuple[str, ...],
        generator: str = "",
        *,
        draws: bool = True,
    ) -> None:
        self.target, self.static = function, static
        self.generator = generator if draws else ""
        known = static if draws or not generator else {**static, generator: None}
        self._function = partial(function, **known) if known else function
        self._slots = None if _is_positional(slots, leading) else slots
        # Leading arguments are passed by position: they may be positional-only.
        own = (slot for slot in slots if slot != _UNUSED)
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(own, leading, strict=False))
        self._leading = frozenset(slot for slot, _ in pairs if "" not in slots)

    @property
    def owner(self) -> Layer | None:
        """The object whose method is called, if operands are passed by name; else None."""
        owner = getattr(self.target, "__self__", None)
        return owner if isinstance(owner, Layer) else None

    @override
    def release(self) -> None:
        """Release the owner's prepared data."""
        if self.owner is not None:
            self.owner.release()

    def arguments(self, operands: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Split operands into those passed by position and by name."""
        if self._slots is None:
            return tuple(operands), {}
        pairs = [pair for pair in zip(self._slots, operands, strict=True) if pair[0] != _UNUSED]
        loose = tuple(o for slot, o in pairs if not slot or slot in self._leading)
        return loose, {slot: o for slot, o in pairs if slot and slot not in self._leading}

    @override
    def forward(self, *inputs: Value, **generator: Generator) -> object:
        if self._slots is None:
            return self._function(*inputs, **generator)
        loose, named = self.arguments(inputs)
        return self._function(*loose, **named, **generator)


def code_of(layer: object) -> Callable[..., Any]:
    """Return the registered code of a layer: a function, or a `Layer` class."""
    if not isinstance(layer, FunctionLayer):
        return type(layer)
    owner = layer.owner
    return layer.target if owner is None else type(owner)


class _LateLayer(Layer):
    """A layer that is built at each run, because arguments of its ``__init__`` are operands.

    Parameters
    ----------
    build : callable
        Builds the layer from the operands by index.
    slots, leading, generator, draws
        As for `FunctionLayer`, for the layer's ``forward``.
    """

    def __init__(
        self,
        build: Callable[[Mapping[int, Any]], Layer],
        slots: list[str],
        leading: tuple[str, ...],
        generator: str,
        *,
        draws: bool,
    ) -> None:
        self._build, self._slots, self._leading = build, slots, leading
        self._argument, self._draws = generator, draws
        self.generator = generator if draws else ""

    @override
    def forward(self, *inputs: Value, **generator: Generator) -> object:
        code = self._build(dict(enumerate(inputs))).forward
        layer = FunctionLayer(
            code, {}, self._slots, self._leading, self._argument, draws=self._draws
        )
        return layer.forward(*inputs, **generator)


def _unwrap_tensor(value: Any, hint: Any) -> Any:
    """Convert a tensor that represents a number or a list of numbers to it."""
    if isinstance(value, np.ndarray) and value.ndim <= 1 and not takes_array(hint):
        numbers = value.tolist()
        return tuple(numbers) if value.ndim else numbers
    return value


def _convert_parameter(name: str, value: Any, hint: Any) -> Any:
    """Convert a parameter to the type of its annotation."""
    options = _list_options(hint)
    for strict in (True, False):
        for option in options:
            converted = _as(value, option, exact=strict)
            if converted is not _ABSENT:
                return converted
    if isinstance(value, bool) and takes_array(hint):
        if value:
            raise ParameterError(name, f"{name}=True, but the model has no attribute @{name}")
        return None
    raise ParameterError(
        name, f"parameter {name} is {_format_value(value)}, not {_describe_options(options)}"
    )


def _as(value: Any, option: Any, *, exact: bool) -> Any:
    """Convert `value` to the type `option`, or return `_ABSENT`; `exact`: no int to float."""
    if option is Any:
        return value
    if option is None or option is type(None):
        return None if value is None else _ABSENT
    if not isinstance(option, type):
        return _as_items(value, option, exact=exact)
    if isinstance(value, option) and isinstance(value, bool) == (option is bool):
        return value
    if not exact and option in {float, complex} and isinstance(value, (int, float)):
        return _ABSENT if isinstance(value, bool) else option(value)
    return _ABSENT


def _as_items(value: Any, option: Any, *, exact: bool) -> Any:
    """Convert `value` to a tuple of the items that `option` states; else as `_as`."""
    if not isinstance(value, tuple) or get_origin(option) is not tuple:
        return _ABSENT
    item = get_args(option)[0]
    items = tuple([_as(each, item, exact=exact) for each in value])
    return _ABSENT if any(each is _ABSENT for each in items) else items


def _format_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


_SPOKEN = {
    int: "an integer", float: "a number", bool: "True or False", str: "a word",
    complex: "a complex number", type(None): "None",
}  # fmt: skip


def takes_array(hint: Any, *, only: bool = False) -> bool:
    """Return whether an argument of this annotation may be (or with `only` is) a tensor."""
    options = {get_origin(option) or option for option in _list_options(hint)}
    numbers = {bool, int, float, complex}
    others = options - numbers - {np.ndarray, type(None)}
    if numbers <= options:
        others.discard(tuple)  # a list of numbers counts as a small tensor
    return np.ndarray in options and not (only and others)


def describe_annotation(hint: Any) -> str:
    """Describe what an argument of this annotation accepts; ``""`` for anything."""
    if hint is Any or {str, np.ndarray} <= {get_origin(o) or o for o in _list_options(hint)}:
        return ""  # any value of an operand
    return _describe_options(_list_options(hint))


def _list_options(hint: Any) -> tuple[Any, ...]:
    if isinstance(hint, type):
        return (hint,)
    return get_args(hint) if is_union(hint) else (hint,)


def _describe_options(options: Iterable[Any]) -> str:
    def one(option: Any) -> str:
        if get_origin(option) is tuple:
            item = _SPOKEN.get(get_args(option)[0], "value")
            return f"a list of {item.split()[-1]}s"
        return _SPOKEN.get(option, "a tensor")

    return " or ".join(dict.fromkeys(one(option) for option in options))
