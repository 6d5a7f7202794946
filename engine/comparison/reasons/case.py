"""An operator that differs, and its alternatives."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.comparison.reasons.constant_weights import product_of
from engine.comparison.reasons.discrepancy import Discrepancy, arrays_of
from engine.comparison.reasons.inverses import invert_elements
from engine.comparison.reasons.ncnn_twins import add_batch, in_float32, twin_of
from engine.cost import cost
from engine.errors import EngineError
from engine.layers import OperatorCall, Outputs, build_layer, layer_table
from engine.layers.annotations import hints_of, parameters_of
from engine.layers.layer import Layer
from engine.layers.ncnn.meanings import ncnn_table
from engine.ncnn.types import PREFIX, is_quantized
from engine.values import LazyArray

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.comparison.reasons.constant_weights import ConstantProduct
    from engine.comparison.reasons.inverses import Inverse
    from engine.comparison.reasons.ncnn_twins import Twin
    from engine.comparison.reasons.reason import Change
    from engine.comparison.reasons.surroundings import Surroundings
    from engine.comparison.reasons.tails import Tail
    from engine.inputs import ImageOptions
    from engine.layers import Registration
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

__all__ = ["DROPPED", "Alternative", "Case", "Weights", "apply_layer", "make_case"]

DROPPED: Final = object()
"""Stands for a missing parameter or weight."""

_HOPELESS: Final = 0.85  # remaining share of a small part's difference, above which an
# alternative is dropped

_TRIALS: Final = 2  # of other weights that are stored as the same
_MARGIN: Final = 2.0  # times what they change, rounding may change
_DEVIATIONS: Final = (
    4.5  # of what rounding changes, which hardly one of 100 000 numbers exceeds
)

# Operations that an alternative takes besides products: for itself, and to measure an element.
_OF_CALL: Final = 1e6
_OF_ELEMENT: Final = 1e2

_LINEAR: Final = ("nn.Linear", "nn.Conv")  # in their weights, also if transposed

Weights = dict[str, "Array"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """What the reference may do instead.

    Attributes
    ----------
    kind, text, changes
        Fields of the reason, if it explains enough.
    params, weights : mapping of str to Any
        Those that differ; `DROPPED` for a missing one. Weights may be lazy.
    inputs : sequence of Value or None
        Other inputs.
    before : tuple of int and callable, or None
        Place of an input, and an element-wise function that is applied to it.
    at : RuntimeOperator or None
        The operator above whose change gives what `before` does; None for ours.
    type : str
        Another operator type; ``""`` for the same.
    after : callable or None
        Applied to the result.
    result : Value
        The result, if no layer has to run.
    by_element : bool
        Whether `after` is element-wise.
    moves : float
        The most that `after` changes an element by, if it is a rounding that needs all of them.
    swapped : bool
        Whether `after` turns the expected result into ours instead of ours into the expected
        one.
    fitted : int
        How many numbers were fitted to the expected result.
    solved : bool
        Whether the expected result chose its numbers, and something else tells that they
        differ: that it explains all is no evidence then.
    least : float
        Smallest share to be a reason alone.
    """

    kind: str
    text: str
    changes: tuple[Change, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[Value] | None = None
    before: tuple[int, Callable[[Array], Array]] | None = None
    at: RuntimeOperator | None = None
    type: str = ""
    after: Callable[[Array], Array] | None = None
    result: Value = None
    by_element: bool = False
    moves: float = 0.0
    swapped: bool = False
    fitted: int = 0
    solved: bool = False
    least: float = 0.9

    @property
    def runs(self) -> bool:
        """Whether a layer has to run."""
        return bool(self.params or self.weights or self.type or self.has_other_inputs)

    @property
    def has_other_inputs(self) -> bool:
        """Whether the operator reads something else."""
        return self.inputs is not None or self.before is not None


@dataclass(frozen=True)
class Case:
    """An operator, the reference's inputs, and the reference's result.

    Attributes
    ----------
    call : OperatorCall
        Of our operator, with its weights.
    table : mapping of str to Registration
    inputs : tuple of Value
    expected : Value
    ours : Value
        None if our operator cannot run.
    reference_weights : mapping of str to Array
    check_cancelled : callable
    tail : Tail or None
        The operators that follow ours before `expected` is shown.
    differing : frozenset of str or None
        Names of weights that are known to differ from the reference's; None if none is known.
    preview : callable or None
        Returns how much of the difference an alternative leaves on a small part of a large
        case; None if that part cannot tell.
    surroundings : Surroundings or None
        Of our operator in the model, if they are known.
    spend : callable
        Counts operations that trying alternatives takes; raises if they are too many.
    macs : float
        Multiply-accumulates for each element of the result.
    twin : Twin or None
        PyTorch's operator that `call` is in place of our layer of ncnn; inputs and results are
        as it has them.
    given : tuple of Value
        The inputs, as our own layer takes them.
    noise : float or ndarray
        How far the rounding of stored weights may take the elements of the result; an array of
        the shape of `expected` if that is known for each element.
    steps : mapping of str to ndarray
        By weight that is stored in float16 or int8: how far the numbers reach that are stored
        as the same one, of a shape that broadcasts to the weight.
    known : ndarray of bool or None
        Which elements of `expected` are known for sure, if there is no tail; None for all.
    product : ConstantProduct or None
        Our operator, if it multiplies by a matrix that is a constant operand.
    source : (ndarray, ImageOptions) or None
        The image that our first input was made from, and how.
    """

    call: OperatorCall
    table: Mapping[str, Registration]
    inputs: tuple[Value, ...]
    expected: Value
    ours: Value
    reference_weights: Mapping[str, Array] = field(default_factory=dict)
    check_cancelled: Callable[[], None] = lambda: None
    tail: Tail | None = None
    differing: frozenset[str] | None = None
    preview: Callable[[Alternative], float | None] | None = None
    surroundings: Surroundings | None = None
    spend: Callable[[float], None] = lambda _: None
    macs: float = 0.0
    twin: Twin | None = None
    given: tuple[Value, ...] = ()
    noise: float | Array = 0.0
    steps: Mapping[str, Array] = field(default_factory=dict)
    known: Array | None = None
    product: ConstantProduct | None = None
    source: tuple[Array, ImageOptions] | None = None

    @property
    def type(self) -> str:
        """The operator's type, or that of its twin."""
        return self.call.type

    @property
    def params(self) -> Mapping[str, Value]:
        """The parameters of the file."""
        return self.call.params

    @property
    def weights(self) -> Mapping[str, Array]:
        """The weights of the file."""
        return self.call.attributes

    @cached_property
    def work(self) -> float:
        """Operations that an alternative takes, whatever the machine does meanwhile."""
        made = sum(array.size for array in arrays_of(self.expected))
        taken = sum(value.size for value in self.inputs if isinstance(value, np.ndarray))
        after = self.tail.macs if self.tail is not None else 0
        return _OF_CALL + _OF_ELEMENT * (taken + made) + self.macs * made + after

    @cached_property
    def discrepancy(self) -> Discrepancy:
        """The difference to explain."""
        return Discrepancy(self.finish(self.ours), self.expected, self.noise)

    @cached_property
    def reverse_discrepancy(self) -> Discrepancy:
        """The difference, with ours as the expected result."""
        return Discrepancy(self.expected, self.ours, self.noise)

    @cached_property
    def wanted(self) -> Value:
        """What our operator should give, so that the tail gives what is expected.

        None if the tail does not tell.
        """
        if self.tail is None:
            return self.expected
        return self._inverse.wanted if self._inverse is not None else None

    @cached_property
    def told(self) -> Array | None:
        """Which elements of `wanted` are known for sure; None for all."""
        if self.tail is None:
            return self.known
        inverse = self._inverse
        return None if inverse is None or inverse.told.all() else inverse.told

    @cached_property
    def _inverse(self) -> Inverse | None:
        return self.tail.invert(self.ours, self.expected) if self.tail is not None else None

    def finish(self, value: Value) -> Value:
        """Return what is shown of a result of our operator; None if what follows refuses it."""
        return value if self.tail is None or value is None else self.tail(value)

    @property
    def input(self) -> Array | None:
        """The first input, if it is a tensor."""
        first = self.inputs[0] if self.inputs else None
        return first if isinstance(first, np.ndarray) else None

    @cached_property
    def pair(self) -> tuple[Array, Array] | None:
        """Our result and the wanted one, if each is one tensor of numbers, of equal shape."""
        one, other = self.ours, self.wanted
        if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
            return None
        if one.shape != other.shape or one.dtype.kind not in "fiu" or not one.size:
            return None
        return (one, other) if other.dtype.kind in "fiu" else None

    @property
    def float_pair(self) -> tuple[Array, Array] | None:
        """The same pair, if the wanted result is of floating-point numbers."""
        return self.pair if self.pair is not None and self.pair[1].dtype.kind == "f" else None

    @cached_property
    def rounding_trial(self) -> Array | None:
        """What other weights that are stored as the same change before a fused activation.

        None for a layer of exact weights.
        """
        if not self.steps or not isinstance(self.ours, np.ndarray):
            return None
        generator = np.random.default_rng(0)
        lost = {name: self._lost_of(name, generator) for name in self.steps}
        found = self._linear_in(lost, self.inputs)
        if found is None:  # it is not linear, and so has no fused activation
            other = self.run(self._stored_as_same(generator))
            found = other - self.ours if isinstance(other, np.ndarray) else None
        return found if found is not None and found.shape == self.ours.shape else None

    def _lost_of(self, name: str, generator: np.random.Generator) -> Array:
        """Draw what rounding may have taken from a stored weight: up to half a step."""
        weight = self.weights[name]
        return generator.uniform(-0.5, 0.5, weight.shape) * self.steps[name]

    def _linear_in(self, parts: Mapping[str, Array], inputs: Sequence[Value]) -> Array | None:
        """Return what a linear layer gives with only some of its weights; None for others."""
        if not parts or not self.type.startswith(_LINEAR):
            return None
        plain = {
            name: np.asarray(np.broadcast_to(parts[name], own.shape), np.float32)
            if name in parts
            else np.zeros_like(own)
            for name, own in self.weights.items()
        }
        self.spend(self.work)
        found = self.without_activation.run(Alternative("", "", weights=plain, inputs=inputs))
        return found if isinstance(found, np.ndarray) else None

    def of_result(self, place: int, expected: Array) -> Case:
        """Return the case of one of several results, as one of an operator that returns it.

        Parameters
        ----------
        place : int
            Of the result, which our operator gives.
        expected : ndarray
            The reference's.
        """
        ours = self.ours[place] if isinstance(self.ours, tuple) else None
        call = OperatorCall(self.call.name, "nn.Identity", {}, {})
        return replace(
            self, call=call, inputs=(ours,), given=(ours,), ours=ours, expected=expected,
            reference_weights={}, differing=None, surroundings=None, twin=None, product=None,
            steps={},
        )  # fmt: skip

    @property
    def as_linear(self) -> Case | None:
        """The case of a product with a constant matrix as that of a linear layer."""
        if self.product is None:
            return None
        weights = {name: each.array for name, each in self.product.weights.items()}
        call = OperatorCall(self.call.name, "nn.Linear", {}, weights, ("",))
        # Operators around ours are known by the places of all its inputs.
        return replace(
            self, call=call, inputs=(self.inputs[self.product.place],), product=None,
            surroundings=None,
        )  # fmt: skip

    @property
    def expected_shape(self) -> tuple[int, ...] | None:
        """Shape of the wanted result, if it is one tensor."""
        if self.tail is not None and not self.tail.is_local:
            return self.tail.shape
        return self.expected.shape if isinstance(self.expected, np.ndarray) else None

    @cached_property
    def arguments(self) -> Mapping[str, tuple[Any, Any]]:
        """Default and annotation of each argument of the operator's code.

        An argument without a default has `DROPPED`.
        """
        entry = self.table.get(self.type)
        return {} if entry is None else _arguments_of(entry.target)

    def value(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        """Return a parameter, or the default of the operator's code."""
        if name in self.params:
            return self.params[name]
        found = self.arguments.get(name, (DROPPED, Any))[0]
        return default if found is DROPPED else found

    def weight(self, name: str = "weight") -> Array | None:
        """Return a weight from the file or from an input."""
        if name in self.weights:
            return self.weights[name]
        names = self.call.input_names
        index = names.index(name) if name in names else -1
        if index < 0 and not any(names) and self.type.startswith(("F.", "torch.conv")):
            index = {"weight": 1, "bias": 2}.get(name, -1)
        value = self.inputs[index] if 0 <= index < len(self.inputs) else None
        return value if isinstance(value, np.ndarray) else None

    def result_of(self, alternative: Alternative) -> Value:
        """Compute what an alternative shows; None if a layer refuses."""
        return self.finish(self.own_result_of(alternative))

    def own_result_of(self, alternative: Alternative) -> Value:
        """Compute what our operator gives with an alternative; None if the layer refuses."""
        self.check_cancelled()
        self.spend(self.work)
        given = alternative
        value = given.result
        if value is None:
            value = self.run(given) if given.runs else self.ours
        if given.after is None or not isinstance(value, np.ndarray):
            return value if given.after is None else None
        with np.errstate(all="ignore"):
            return given.after(value)

    def share(self, alternative: Alternative) -> float:
        """Return the share of the difference that an alternative explains."""
        self.check_cancelled()
        seen = self.preview(alternative) if self.preview is not None else None
        if seen is not None and seen > _HOPELESS:
            return 0.0
        if alternative.swapped:
            if alternative.after is None or self.pair is None or self.tail is not None:
                return 0.0
            if self.reverse_discrepancy.is_constant:  # which much seems to give
                return 0.0
            with np.errstate(all="ignore"):
                undone = alternative.after(self.pair[1])
            return self.reverse_discrepancy.share(undone, alternative.fitted)
        result = self.result_of(alternative)
        return 0.0 if result is None else self.discrepancy.share(result, alternative.fitted)

    def left(self, alternative: Alternative) -> float:
        """Return how much of the difference an alternative leaves; inf for other shapes.

        For a large case it may be measured on a small part.
        """
        seen = self.preview(alternative) if self.preview is not None else None
        if seen is not None:
            return seen
        result = self.result_of(alternative)
        return math.inf if result is None else self.discrepancy.left(result)

    def changed_call(self, alternative: Alternative) -> OperatorCall:
        """Return the call of our operator with an alternative's changes."""
        params = {**self.params, **alternative.params}
        weights = {**self.weights, **alternative.weights}
        given = self.inputs if alternative.inputs is None else alternative.inputs
        names, count = self.call.input_names, len(given)
        return replace(
            self.call,
            type=alternative.type or self.type,
            input_names=names if len(names) == count else ("",) * count,
            params={k: v for k, v in params.items() if v is not DROPPED},
            attributes={k: _made(v) for k, v in weights.items() if v is not DROPPED},
            output_shapes=self.call.output_shapes if not alternative.type else (),
        )

    def inputs_of(self, alternative: Alternative) -> tuple[Value, ...]:
        """Return the inputs of an alternative."""
        given = self.inputs if alternative.inputs is None else tuple(alternative.inputs)
        if alternative.before is None:
            return given
        place, function = alternative.before
        value = given[place]
        assert isinstance(value, np.ndarray)  # noqa: S101 - a function of elements
        return (*given[:place], function(value), *given[place + 1 :])

    def run(self, alternative: Alternative) -> Value:
        """Run the operator's layer with an alternative's changes; None if it refuses."""
        inputs = self.inputs_of(alternative)
        result = _forward(self.changed_call(alternative), self.table, inputs)
        if isinstance(result, Outputs):
            several = isinstance(self.expected, tuple) or (
                self.tail is not None and self.tail.takes_several
            )
            result = tuple(result[: self.call.output_count]) if several else result[0]
        elif isinstance(result, tuple) and len(result) == 1 and self.call.output_count == 1:
            (result,) = result
        value: Value = np.asarray(result) if isinstance(result, np.generic) else result
        return self.activate(value)

    def activate(self, value: Value) -> Value:
        """Return a result after the activation that our layer of ncnn has fused, if any."""
        activation = self.twin.activation if self.twin is not None else None
        if activation is None or not isinstance(value, np.ndarray):
            return value
        return activation(value)

    @property
    def without_activation(self) -> Case:
        """The case whose operator does not apply the fused activation; `ours` still does."""
        if self.twin is None or self.twin.activation is None:
            return self
        return replace(self, twin=replace(self.twin, activation=None))

    @cached_property
    def before_activation(self) -> Case | None:
        """The case of what our operator gives to the activation that it has fused.

        None if it has fused none, or if the expected result does not tell.
        """
        plain, wanted = self.without_activation, self.wanted
        if plain is self or not isinstance(wanted, np.ndarray) or wanted.dtype.kind != "f":
            return None
        self.spend(self.work)
        ours = plain.run(Alternative("", ""))
        if not isinstance(ours, np.ndarray) or ours.shape != wanted.shape:
            return None
        found = invert_elements(self.activate, ours, wanted)
        if found is None:
            return None
        known = found.told if self.told is None else found.told & self.told
        noise = plain.rounding_noise
        return replace(
            plain, ours=ours, expected=found.wanted, tail=None, known=known,
            noise=0.0 if noise is None else noise, preview=None,
        )  # fmt: skip

    @cached_property
    def rounding_noise(self) -> Array | None:
        """How far rounding the weights may take each element of a linear layer's result.

        Errors of weights are independent: the squares of what they change add up.
        """
        if self.input is None:
            return None
        squares = {name: np.square(step) / 12 for name, step in self.steps.items()}
        found = self._linear_in(squares, (np.square(self.input),))
        return None if found is None else _DEVIATIONS * np.sqrt(found)

    def with_trial(self, generator: np.random.Generator) -> Value:
        """Return what is shown with other weights that are stored as the same."""
        return self.result_of(self._stored_as_same(generator))

    def _stored_as_same(self, generator: np.random.Generator) -> Alternative:
        weights = {
            name: (self.weights[name] + self._lost_of(name, generator)).astype(np.float32)
            for name in self.steps
        }
        return Alternative("", "", weights=weights)

    def corrected(self, alternative: Alternative) -> Value:
        """Compute what our operator gives with an alternative, in its own layer's shape."""
        value = self.own_result_of(alternative)
        batched = self.twin is not None and self.twin.is_batched
        return value[0] if batched and isinstance(value, np.ndarray) else value

    def corrected_inputs(self, alternative: Alternative) -> tuple[Value, ...]:
        """Return the inputs of an alternative, in the shapes that our own layer takes."""
        found = self.inputs_of(alternative)
        if self.twin is None or len(found) != len(self.given):
            return found
        return tuple([
            value.reshape(own.shape)
            if isinstance(value, np.ndarray) and isinstance(own, np.ndarray)
            and value.size == own.size
            else value
            for value, own in zip(found, self.given, strict=True)
        ])  # fmt: skip

    def differs(self, weight: str) -> bool:
        """Whether a weight is known to differ from the reference's."""
        return self.differing is not None and weight in self.differing

    def may_differ(self, weight: str) -> bool:
        """Whether a weight is not known to equal the reference's."""
        return self.differing is None or weight in self.differing

    def with_changes(self, alternative: Alternative) -> Case:
        """Return the case of our operator with an alternative's changes."""
        call, inputs = self.changed_call(alternative), self.inputs_of(alternative)
        ours = self.own_result_of(alternative)
        return replace(self, call=call, inputs=inputs, ours=ours, preview=None)


@np.errstate(all="ignore")  # NaN and inf are results here
def make_case(
    operator: RuntimeOperator,
    inputs: Sequence[Value],
    expected: Value,
    *,
    ours: Value = None,
    reference_weights: Mapping[str, Array] | None = None,
    check_cancelled: Callable[[], None] | None = None,
    tail: Tail | None = None,
    differing: frozenset[str] | None = None,
    surroundings: Surroundings | None = None,
    spend: Callable[[float], None] | None = None,
) -> Case | None:
    """Run an operator on the reference's inputs.

    Parameters
    ----------
    operator : RuntimeOperator
        Our operator; not changed.
    inputs : sequence of Value
        The reference's inputs, one per operand.
    expected : Value
        The reference's result: the first output, or a tuple of all of them; with a tail, the
        tensor that it ends with.
    ours : Value, optional
        Our result on these inputs; computed in NumPy without.
    reference_weights : mapping of str to ndarray, optional
        The reference's weights by our names, if they are known.
    check_cancelled : callable, optional
        Called between alternatives; raises to stop.
    tail : Tail, optional
        The operators that follow ours, if the reference shows only their result.
    differing : frozenset of str, optional
        Names of the weights that are known to differ from the reference's, by their hashes.
    surroundings : Surroundings, optional
        Of the operator in the model.
    spend : callable, optional
        Called with the operations that an alternative takes; raises to stop.

    Returns
    -------
    Case or None
        None for an operator that draws random numbers, whose results no reference has.
    """
    if operator.is_input or operator.is_output:
        return None
    call = OperatorCall(
        name=operator.name,
        type=operator.type,
        params=operator.params,
        attributes={key: a.array for key, a in operator.attributes.items() if a.is_stored},
        input_names=operator.input_names,
        output_count=operator.result_count,
        constants=operator.constants(),
        output_shapes=operator.output_shapes,
        storage=operator.storage,
    )
    table = layer_table()
    if operator.from_onnx:
        from engine.layers.onnx.meanings import onnx_table

        table = onnx_table(table)
    if operator.error is None and operator.random:
        return None
    quantised = is_quantized(call.params)
    call, steps = in_float32(call)
    twin = twin_of(call, inputs)
    if operator.error is None and ours is None and not (quantised and steps):
        several = tail is not None and tail.takes_several
        ours = _own_result(operator, inputs, several=several or isinstance(expected, tuple))
    case = Case(
        call, table, tuple(inputs), expected, ours,
        reference_weights or {}, check_cancelled or (lambda: None), tail, differing,
        surroundings=surroundings, spend=spend or (lambda _: None), macs=_macs_of(operator),
        product=product_of(operator), steps=steps,
    )  # fmt: skip
    if twin is not None:
        case = _in_words_of_torch(case, twin)
    elif call.type.startswith(PREFIX):
        case = replace(case, table=ncnn_table(table))
    return _with_noise(case) if steps and operator.error is None else case


def _in_words_of_torch(case: Case, twin: Twin) -> Case:
    """Return the case of a layer of ncnn as that of PyTorch's operator."""
    found = replace(
        case, call=twin.call, twin=twin, inputs=twin.take(case.inputs), given=case.inputs,
        reference_weights=twin.rename(case.reference_weights),
        differing=twin.rename_all(case.differing), steps=twin.rename(case.steps),
    )  # fmt: skip
    if not twin.is_batched:
        return found
    tail, around = case.tail, case.surroundings
    return replace(
        found, expected=add_batch(case.expected), ours=add_batch(case.ours),
        tail=tail.with_batch() if tail is not None else None,
        surroundings=around.with_batch() if around is not None else None,
    )  # fmt: skip


def _with_noise(case: Case) -> Case:
    """Return the case of a layer with what the rounding of its stored weights may change.

    It computes in float32 with the weights that the stored ones stand for. Their errors are
    spread evenly over a step.
    """
    plain = case.without_activation
    before = plain.run(Alternative("", ""))
    case = replace(case, ours=case.activate(before))
    shown = case.finish(case.ours)
    local = case.tail is None or case.tail.is_local
    apart = plain.rounding_noise if local else None
    if apart is None or not (isinstance(before, np.ndarray) and isinstance(shown, np.ndarray)):
        return replace(case, noise=_noise_of_trials(case, shown))
    ends = [case.finish(case.activate(before + sign * apart)) for sign in (1, -1)]
    noise = np.max([np.abs(end - shown) for end in ends if isinstance(end, np.ndarray)], 0)
    same = isinstance(case.expected, np.ndarray) and noise.shape == case.expected.shape
    return replace(case, noise=noise if same else float(noise.max()))


def _noise_of_trials(case: Case, shown: Value) -> float:
    """Return how far other weights that are stored as the same take what is shown."""
    generator, noise = np.random.default_rng(0), 0.0
    for _ in range(_TRIALS):
        pairs = zip(arrays_of(case.with_trial(generator)), arrays_of(shown), strict=False)
        changes = [np.abs(a - b) for a, b in pairs if a.shape == b.shape]
        noise = max([noise, *(float(each.max(initial=0.0)) for each in changes)])
    return _MARGIN * noise


def _made(weight: Array | LazyArray) -> Array:
    return weight.array if isinstance(weight, LazyArray) else weight


def _macs_of(operator: RuntimeOperator) -> float:
    """Return the multiply-accumulates for each element of the results, as exported."""
    shapes = [operand.shape for operand in operator.outputs]
    sizes = [math.prod(n for n in shape if isinstance(n, int)) for shape in shapes if shape]
    return cost(operator).macs / max(sum(sizes), 1)


def apply_layer(type: str, *inputs: Value, **params: Value) -> Array | None:  # noqa: A002
    """Apply an operator without weights; None if it refuses."""
    call = OperatorCall("", type, params, input_names=("",) * len(inputs))
    result = _forward(call, layer_table(), inputs)
    return result if isinstance(result, np.ndarray) else None


@lru_cache(maxsize=256)
def _arguments_of(code: Callable[..., Any]) -> Mapping[str, tuple[Any, Any]]:
    """Return default and annotation of each argument of a layer's code."""
    if isinstance(code, type) and issubclass(code, Layer):
        code = code.__init__
    try:
        hints = hints_of(code)
        return {
            p.name: (
                DROPPED if p.default is inspect.Parameter.empty else p.default,
                hints.get(p.name, Any),
            )
            for p in parameters_of(code)
            if p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}
        }
    except Exception:  # noqa: BLE001 - the code may be the user's
        return {}


def _own_result(operator: RuntimeOperator, inputs: Sequence[Value], *, several: bool) -> Value:
    try:
        results = operator.forward(inputs)
    except EngineError:  # a failure of ours is explained too
        return None
    whole = several and len(results) > 1
    return results if whole else results[0] if results else None


def _forward(
    call: OperatorCall, table: Mapping[str, Registration], inputs: Sequence[Value]
) -> Any:  # noqa: ANN401 - whatever a layer returns
    """Build and run a layer; None if it refuses, or draws random numbers."""
    try:
        layer = build_layer(call, table)
        if layer.generator:
            return None
        with np.errstate(all="ignore"):
            return layer.forward(*inputs)
    except Exception:  # noqa: BLE001 - most alternatives do not fit, and code may be the user's
        return None
