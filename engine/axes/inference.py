"""Infers the layouts of all operands of a graph."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from engine.axes.call import Call
from engine.axes.factors import Factors, Rank
from engine.axes.layout import SPATIAL, Kind, Layout
from engine.axes.naming import name_dims
from engine.axes.products import PRODUCTS, SOFTMAX, find_product, summed_places
from engine.axes.registry import find_rule
from engine.axes.rules.attention import claim_heads
from engine.axes.rules.elementwise import keep
from engine.axes.weights import weight_layout
from engine.collector import collector_paused
from engine.errors import ExpressionError
from engine.expression import ListNode, OperandRef, parse
from engine.layers.expression import expression_text
from engine.runtime.members import members_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.axes.call import Results
    from engine.axes.factors import Dim, Dims
    from engine.axes.layout import Axis, Size
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator

__all__ = ["infer_layouts"]

_Key: TypeAlias = tuple[tuple[int, ...], ...]

# More dimensions than any operator has.
_MOST_DIMENSIONS: Final = 16
# Lists may contain lists again and again.
_MOST_OUTPUTS: Final = 1024
_LOG_SOFTMAX: Final = frozenset({"F.log_softmax", "nn.LogSoftmax"})
_LINEAR: Final = frozenset({"nn.Linear", "F.linear", "ncnn.InnerProduct", "ncnn.Gemm"})
# Meanings that depend on the other dimensions of an operand, and their general meaning.
_OWN_KINDS: Final = {
    Kind.CHANNEL: Kind.FEATURE, Kind.QUERY: Kind.TOKEN, Kind.KEY: Kind.TOKEN,
}  # fmt: skip
_RESHAPES: Final = frozenset({"Tensor.reshape", "Tensor.view"})
# What shifts the rows of scores by distance, and the most of them in a row.
_SHIFTING: Final = _RESHAPES | {"F.pad", "torch.flatten"}
_MOST_SHIFTING: Final = 5
_MOST_WEIGHING: Final = 9  # operators between a softmax and its product
_INDEXED: Final = frozenset({"Tensor.index", "Tensor.index_put"})
_GROUPED: Final = frozenset({"aten::_grouped_mm"})
_SORTS: Final = frozenset({"torch.sort", "torch.argsort", "aten::sort", "aten::argsort"})
_SUMS: Final = frozenset({"torch.sum", "torch.mean", "torch.norm", "torch.linalg.norm"})
_COLOURS: Final = frozenset({1, 3})
_SAMPLER: Final = "F.grid_sample"
_JOINS: Final = frozenset({"torch.stack", "torch.cat", "torch.concat"})
_PICKS: Final = frozenset({"torch.unbind", "Tensor.select"})
# What joins the results of several heads or takes one of them, and the most of them in a row.
_JOINING: Final = frozenset(
    {"pnnx.Expression", "torch.stack", "torch.mean", "torch.unbind", "Tensor.select",
     "torch.squeeze", "Tensor.reshape"}
)  # fmt: skip
_MOST_JOINING: Final = 3
_HEADS: Final = ("fc", "head", "class", "logits", "cls", "final")


def infer_layouts(
    graph: RuntimeGraph,
    shapes: Mapping[str, tuple[Size, ...] | None] | None = None,
    overrides: Mapping[str, Layout] | None = None,
) -> Mapping[str, Layout]:
    """Infer the meaning of every dimension of every operand.

    Parameters
    ----------
    graph : RuntimeGraph
    shapes : mapping of str to tuple of Size, optional
        Shapes by operand name, such as those of a run. The file's shapes replace missing ones.
    overrides : mapping of str to Layout, optional
        The user's layouts by operand name. They are stronger than all evidence, and spread to
        operands with the same dimensions.

    Returns
    -------
    mapping of str to Layout
        By operand name. An operand of unknown rank has no layout. An override of another shape
        is ignored.

    Notes
    -----
    The time is proportional to the number of operators. No operator is computed, and no weight
    is read.
    """
    shapes = shapes or {}
    with collector_paused():
        found = _Inference(graph, shapes).run()
        changed = {
            name: (layout, found[name])
            for name, layout in (overrides or {}).items()
            if name in found and found[name].shape == layout.shape
        }
        return _Inference(graph, shapes, changed).run() if changed else found


class _Inference:
    def __init__(
        self,
        graph: RuntimeGraph,
        shapes: Mapping[str, tuple[Size, ...] | None],
        overrides: Mapping[str, tuple[Layout, Layout]] | None = None,
    ) -> None:
        self.graph, self.shapes, self.overrides = graph, shapes, overrides or {}
        self.factors = Factors()
        self.dims: dict[str, Dims] = {}
        # Equal constants share an operand; each consumer may mean something else by it.
        self.constants: set[str] = set()
        self.copies: dict[str, list[Dims]] = {}
        self._named: dict[_Key, Layout] = {}
        self.vocabularies: set[int] = set()
        self.has_batch = graph.file.format != "ncnn"

    def run(self) -> Mapping[str, Layout]:
        for operator in self.graph.operators:
            self._relate(operator)
        for operator in self.graph.operators:
            if operator.type in SOFTMAX and find_product(operator) is not None:
                self._claim_attention(operator)
        for operator in self.graph.operators:
            if operator.type in PRODUCTS and operator.inputs:
                self._claim_distances(operator)
                self._claim_summed(operator)
        self._claim_experts()
        self._claim_levels()
        self._claim_sampled()
        self._claim_differences()
        self._claim_outputs()
        for operand in self.graph.input_operands:
            self._claim_spectrogram(self.dims.get(operand.name, ()))
            self._claim_colours(self.dims.get(operand.name, ()))
            self._claim_pairs(self.dims.get(operand.name, ()))
            self._claim_signal(self.dims.get(operand.name, ()))
        for name, (layout, inferred) in self.overrides.items():
            self._override(name, layout, inferred)
        self.factors.settle()
        for dims in self.dims.values():
            self.factors.note_attended(dims)
        found = {name: self._name(name, dims) for name, dims in self.dims.items()}
        return {**found, **{name: layout for name, (layout, _) in self.overrides.items()}}

    def _name(self, name: str, dims: Dims) -> Layout:
        """Name an operand; a constant by the first consumer that knows its meaning."""
        layout = self._name_dims(dims)
        if layout.is_named:
            return layout
        others = (self._name_dims(copy) for copy in self.copies.get(name, ()))
        return next((other for other in others if other.is_named), layout)

    def _name_dims(self, dims: Dims) -> Layout:
        key = self._key(dims)
        if key not in self._named:
            self._named[key] = name_dims(self.factors, dims)
        return self._named[key]

    def _key(self, dims: Dims) -> _Key:
        """Return what dimensions have in common that are known to be the same."""
        return tuple([tuple([self.factors.find(f) for f in dim]) for dim in dims])

    # One operator

    def _relate(self, operator: RuntimeOperator) -> None:
        """Relate the dimensions of an operator's results to those of its inputs."""
        shapes = self._shapes_of_results(operator)
        inputs = [self._input(operand) for operand in _read_by(operator)]
        call = Call(operator, self.factors, inputs, shapes, has_batch=self.has_batch)
        results: Results = []
        if operator.inputs and operator.outputs:
            results = (find_rule(operator.type) or keep)(call)
        self._keep_results(operator, shapes, results)
        if not operator.inputs and operator.outputs and operator.type != "pnnx.Input":
            self._hint(operator, self.dims.get(operator.outputs[0].name, ()))
        if operator.type.endswith(("Embedding", "embedding")):
            self._note_vocabulary(operator)
        if operator.tied_inputs and inputs and operator.outputs:
            self._relate_weights(operator, inputs[0])

    def _shapes_of_results(self, operator: RuntimeOperator) -> list[tuple[Size, ...] | None]:
        """Return the shape of each result; None for an unknown one."""
        shapes = [self._shape(operand) for operand in operator.outputs]
        if not operator.inputs and shapes == [None] and len(operator.attributes) == 1:
            return [attribute.shape for attribute in operator.attributes.values()]
        return shapes

    def _keep_results(
        self,
        operator: RuntimeOperator,
        shapes: Sequence[tuple[Size, ...] | None],
        results: Results,
    ) -> None:
        """Keep the dimensions of an operator's results; new ones where its rule has none."""
        is_constant = all(operand.name in self.constants for operand in operator.inputs)
        for place, operand in enumerate(operator.outputs):
            if is_constant and not operator.is_input:
                self.constants.add(operand.name)
            shape = shapes[place]
            if shape is None:
                continue
            dims = results[place] if place < len(results) else None
            if dims is None or len(dims) != len(shape):
                dims = self.factors.make_dims(shape)
            self.dims[operand.name] = dims

    def _shape(self, operand: RuntimeOperand) -> tuple[Size, ...] | None:
        shape = self.shapes.get(operand.name)
        shape = operand.shape if shape is None else shape
        shape = _stated_shape(operand) if shape is None else shape
        return shape if shape is not None and len(shape) <= _MOST_DIMENSIONS else None

    def _input(self, operand: RuntimeOperand) -> Dims | None:
        found = self.dims.get(operand.name)
        if found is not None and operand.name in self.constants:
            return self._copy(operand, found)
        if found is None:
            shape = self._shape(operand)
            if shape is not None:
                found = self.dims[operand.name] = self.factors.make_dims(shape)
        return found

    def _copy(self, operand: RuntimeOperand, dims: Dims) -> Dims:
        """Return the dimensions of a constant for its first consumer, then others each time."""
        copies = self.copies.get(operand.name)
        if copies is None:
            self.copies[operand.name] = []
            return dims
        copies.append(self.factors.make_dims([self.factors.extent(dim) for dim in dims]))
        if operand.producer is not None and not operand.producer.inputs:
            self._hint(operand.producer, copies[-1])
        return copies[-1]

    def _dims_of(self, operands: Sequence[RuntimeOperand]) -> Dims:
        """Return the dimensions of the first of several operands, as far as they are known.

        They are empty without any operand: a file may have fewer than a type needs.
        """
        return self.dims.get(operands[0].name, ()) if operands else ()

    def _hint(self, operator: RuntimeOperator, dims: Dims) -> None:
        """Remember the name of a weight for the tokens that it may hold."""
        for dim in dims:
            self.factors.hints[dim[0]] = operator.name

    def _relate_weights(self, operator: RuntimeOperator, source: Dims | None) -> None:
        """Name the dimensions of weights that are operands."""
        result = self.dims.get(operator.outputs[0].name)
        for place, tied in enumerate(operator.tied_inputs):
            dims = self.dims.get(tied.name)
            if dims is not None and source and result:
                self._relate_weight(operator, place, dims, source, result)

    def _relate_weight(
        self, operator: RuntimeOperator, place: int, dims: Dims, source: Dims, result: Dims
    ) -> None:
        if operator.type in _LINEAR:
            self.factors.unify(dims[0], result[-1])
            if len(dims) == 2:
                self.factors.unify(dims[1], source[-1])
        elif operator.type.endswith("mbedding") and len(dims) == 2:
            self.factors.claim(dims[0], Kind.VOCABULARY, Rank.STATED)
            self.factors.unify(dims[1], result[-1])
        else:
            shape = tuple([self.factors.size(dim) or 0 for dim in dims])
            layout = weight_layout(operator.type, "bias" if place else "weight", shape)
            for dim, kind in zip(
                dims, layout.kinds if layout is not None else (), strict=False
            ):
                self.factors.claim(dim, kind, Rank.EXPECTED)

    def _note_vocabulary(self, operator: RuntimeOperator) -> None:
        weight = operator.attributes.get("weight")
        if weight is not None and len(weight.shape) == 2:
            self.vocabularies.add(weight.shape[0])

    # Evidence from several operators

    def _claim_attention(self, operator: RuntimeOperator) -> None:
        """Name heads, queries and keys of products that a softmax normalises."""
        dims = self.dims.get(operator.inputs[0].name)
        if dims is None or len(dims) < 3:
            return
        factors = self.factors
        for dim in dims[-2:]:
            if factors.kind(factors.origin(dim[0])) is not Kind.FEATURE:  # of channels
                factors.claim(dim, Kind.TOKEN, Rank.EXPECTED)
        claim_heads(factors, dims)
        factors.note_apart(dims[:-2])
        if not self.has_batch and len(dims) == 3:
            factors.claim(dims[0], Kind.HEAD, Rank.EXPECTED)

    def _claim_distances(self, product: RuntimeOperator) -> None:
        """Name relative positions: from one end of the sequence to the other.

        Scores of them are shifted afterwards, row by row, to the keys. Transformer-XL has one
        distance more than others, and HaloNet has more keys than queries, which shows by the
        reshape that shifts.
        """
        factors = self.factors
        scores = self._dims_of(product.outputs)
        if len(scores) < 3 or not self._has_heads(scores[:-2]):
            return
        self._claim_summed_distances(product)
        count, distances = factors.size(scores[-2]) or 0, factors.size(scores[-1]) or 0
        if count < 2 or not (
            distances == 2 * count - 1 or _is_shifted(product, count, distances)
        ):
            return
        table = product.inputs[-1].producer
        is_table = table is not None and table.is_constant
        factors.claim(scores[-1], Kind.DISTANCE, Rank.STATED if is_table else Rank.GUESSED)

    def _claim_summed_distances(self, product: RuntimeOperator) -> None:
        """Name the rows of a table by which the weights of distances are multiplied."""
        weights = self._dims_of(product.inputs)
        table = product.inputs[-1].producer
        if len(weights) < 2 or product.type == "torch.einsum":
            return
        count, distances = map(self.factors.size, weights[-2:])
        if table is not None and table.is_constant and count and distances == 2 * count - 1 > 1:
            self.factors.claim(weights[-1], Kind.DISTANCE, Rank.STATED)

    def _has_heads(self, dims: Dims) -> bool:
        return any(
            self.factors.kind(leaf) is Kind.HEAD
            for dim in dims
            for leaf in (*dim, *self.factors.leaves(dim))
        )

    def _claim_summed(self, product: RuntimeOperator) -> None:
        """Name what a product sums over features, if nothing else tells its meaning."""
        dims = self._dims_of(product.inputs)
        for place in summed_places(product) if dims else ():
            dim = dims[place] if -len(dims) <= place < len(dims) else ()
            if len(dim) == 1 and self.factors.kind(dim[0]) is Kind.UNKNOWN:
                kind = Kind.TOKEN if _weighs(product) else Kind.FEATURE
                self.factors.claim(dim, kind, Rank.GUESSED)

    def _claim_experts(self) -> None:
        """Name experts, of which a few are chosen for each token.

        Their weights are in one constant, or the choices are sorted to group the tokens.
        """
        factors = self.factors
        stacks = self._stacked_weights()
        counts = {factors.size(dims[0]) for dims in stacks} - {None, 1}
        for operator in self.graph.operators:
            scores = self._chosen_scores(operator)
            if not scores:
                continue
            router = factors.whole(scores)
            parts = (router, *scores)
            is_chosen = factors.sizes[router] in counts or _are_sorted(operator)
            kinds = {factors.kind(each) for each in parts}
            if not is_chosen or not kinds <= {Kind.FEATURE, Kind.UNKNOWN}:
                continue
            for each in parts:
                factors.claim((each,), Kind.EXPERT, Rank.STATED)
            for dims in stacks:
                if factors.size(dims[0]) == factors.sizes[router]:
                    factors.claim(dims[0], Kind.EXPERT, Rank.STATED)
                    for dim in dims[1:]:
                        factors.claim(dim, Kind.FEATURE, Rank.GUESSED)
            # Biases, of which each token takes that of its expert.
            for dims in self._indexed_tables():
                if factors.size(dims[0]) == factors.sizes[router]:
                    factors.claim(dims[0], Kind.EXPERT, Rank.GUESSED)

    def _stacked_weights(self) -> list[Dims]:
        """Return the dimensions of constants of products that stack matrices."""
        constants = [
            operand.name
            for operator in self.graph.operators
            if operator.type in PRODUCTS | _GROUPED
            for operand in operator.inputs[:2]
            if operand.name in self.constants
        ]
        found = (
            dims
            for name in constants
            for dims in (self.dims.get(name, ()), *self.copies.get(name, ()))
        )
        return [dims for dims in found if len(dims) == 3]

    def _indexed_tables(self) -> list[Dims]:
        """Return the dimensions of matrices of the file of which an index picks rows."""
        names = {
            operator.inputs[0].name
            for operator in self.graph.operators
            if operator.type == "Tensor.index" and operator.inputs
        }
        found = [self.dims.get(name, ()) for name in sorted(names & self.constants)]
        return [dims for dims in found if len(dims) == 2]

    def _chosen_scores(self, operator: RuntimeOperator) -> Dim:
        """Return the dimension of which an operator chooses the largest; empty for others."""
        if operator.type != "torch.topk":
            return ()
        scores = self._dims_of(operator.inputs)
        place = _place_of(operator, len(scores))
        return scores[-1] if place is not None and place == len(scores) - 1 else ()

    def _claim_levels(self) -> None:
        """Name the pictures of several sizes that an attention samples at points."""
        for operator in self.graph.operators:
            if operator.type not in _JOINS or len(operator.inputs) < 2:
                continue
            samplers = [operand.producer for operand in operator.inputs]
            dims = [self.dims.get(operand.name, ()) for operand in operator.inputs]
            joined = self._dims_of(operator.outputs)
            place = _place_of(operator, len(joined))
            if place is None or any(each is None or each.type != _SAMPLER for each in samplers):
                continue
            for each in filter(None, dims):
                self.factors.claim(each[-1], Kind.POINT, Rank.STATED)
            self.factors.claim(
                joined[place],
                Kind.LEVEL if operator.type == "torch.stack" else Kind.POINT,
                Rank.STATED,
            )
            for sampler in samplers:
                self._claim_grid(sampler)

    def _claim_differences(self) -> None:
        """Name what is summed of each two positions of a cloud: their coordinates."""
        factors = self.factors
        for operator in self.graph.operators:
            dims = self._dims_of(operator.inputs) if operator.type in _SUMS else ()
            if len(dims) < 3 or operator.params.get("dim") not in {(-1,), (len(dims) - 1,)}:
                continue
            one, other = (factors.find(dim[0]) for dim in dims[-3:-1])
            is_known = len(dims[-1]) > 1 or factors.kind(dims[-1][0]) is not Kind.UNKNOWN
            if one == other and factors.sizes[one] != 1 and not is_known:
                factors.claim(dims[-1], Kind.COORDINATE, Rank.GUESSED)

    def _claim_sampled(self) -> None:
        """Name the sides of a grid by which a picture is sampled, if nothing else tells them.

        RAFT looks up the neighbours of the place that each position flows to.
        """
        for operator in self.graph.operators:
            dims = self._dims_of(operator.outputs)
            sides = dims[-2:] if operator.type == _SAMPLER and len(dims) == 4 else ()
            if sides and all(self.factors.kind(side[0]) is Kind.UNKNOWN for side in sides):
                for side, kind in zip(sides, (Kind.ROW, Kind.COLUMN), strict=True):
                    self.factors.claim(side, kind, Rank.DERIVED)

    def _claim_grid(self, sampler: RuntimeOperator | None) -> None:
        """Name the levels of which the grid of a sampling is one."""
        grids = sampler.inputs[-1:] if sampler is not None else ()
        operator = grids[0].producer if grids else None
        for _ in range(_MOST_JOINING):
            if operator is None or not operator.inputs or operator.type in _PICKS:
                break
            operator = operator.inputs[0].producer
        if operator is None or operator.type not in _PICKS:
            return
        dims = self.dims.get(operator.inputs[0].name, ())
        place = _place_of(operator, len(dims))
        if place is not None:
            self.factors.claim(dims[place], Kind.LEVEL, Rank.STATED)

    def _claim_spectrogram(self, dims: Dims) -> None:
        """Name an input that a model turns to an image: pictures are given as rows of columns.

        Frames of a spectrogram follow each other in time, and the model makes its frequencies
        the rows. Or the frames are its rows, and those of its results a signal.
        """
        factors = self.factors
        heads = [dim for dim in dims[:-2] if factors.extent(dim) != 1]
        if len(dims) < 2 or any(factors.kind(dim[0]) is not Kind.BATCH for dim in heads):
            return
        times, frequencies = dims[-2][0], dims[-1][0]
        kinds = factors.kind(times), factors.kind(frequencies)
        is_signal = kinds == (Kind.ROW, Kind.COLUMN) and factors.is_timed(times)
        if is_signal or kinds == (Kind.COLUMN, Kind.ROW):
            factors.replace(times, Kind.TIME)
            factors.replace(frequencies, Kind.FREQUENCY)

    def _claim_colours(self, dims: Dims) -> None:
        """Name the channels of an input of which a model reads each by itself.

        Or of a picture that is cut to patches before any convolution.
        """
        factors = self.factors
        sides = dims[2:] if len(dims) == 4 and factors.size(dims[1]) in _COLOURS else ()
        if sides and all(len(side) == 1 and factors.parts(side[0]) for side in sides):
            for side, kind in zip(sides, (Kind.ROW, Kind.COLUMN), strict=True):
                factors.claim(side, kind, Rank.GUESSED)
        kinds = [factors.kind(dim[0]) for dim in dims]
        if kinds[1:] == [Kind.UNKNOWN, Kind.ROW, Kind.COLUMN]:
            factors.claim(dims[1], Kind.FEATURE, Rank.GUESSED)

    def _claim_pairs(self, dims: Dims) -> None:
        """Name what looks like samples, but is paired with itself: the nodes of a graph.

        Its edges are such an input: a number for each two nodes.
        """
        factors = self.factors
        if len(dims) < 2 or factors.extent(dims[-1]) == 1 or len(dims[-1]) > 1:
            return
        node = factors.find(dims[-1][0])
        if factors.find(dims[-2][0]) == node and factors.kind(node) is Kind.BATCH:
            factors.replace(node, Kind.TOKEN)

    def _claim_signal(self, dims: Dims) -> None:
        """Name a series of numbers that a model cuts to tokens of several of them."""
        factors = self.factors
        if not dims or len(dims[-1]) > 1 or factors.kind(dims[-1][0]) is not Kind.UNKNOWN:
            return
        kinds = [factors.kind(part) for part in factors.parts(dims[-1][0])]
        if kinds == [Kind.TOKEN, Kind.FEATURE]:
            factors.claim(dims[-1], Kind.TIME, Rank.GUESSED)

    def _claim_outputs(self) -> None:
        """Name classes, vocabulary and boxes of the model's results."""
        members = islice(members_of(self.graph.output_operands), _MOST_OUTPUTS)
        outputs = {operand.name: operand for operand in members}
        shown = {name: self.dims[name] for name in outputs if name in self.dims}
        # Hundreds of results may have the same dimensions; one of them tells as much.
        keys = {name: self._key(dims) for name, dims in shown.items()}
        counts = Counter(keys.values())
        distinct: dict[_Key, Dims] = {}
        for name, dims in shown.items():
            distinct.setdefault(keys[name], dims)
        read = self._read_by_linear()
        for name, dims in shown.items():
            if len(dims) < 2:
                self._claim_vector(outputs[name], dims)
                continue
            self._claim_classes(outputs[name], dims, read)
            if self.factors.size(dims[-1]) == 4:
                others = [d for key, d in distinct.items() if key != keys[name]]
                others += [dims] * (counts[keys[name]] > 1)
                self._claim_boxes(dims, [d for d in others if len(d) == len(dims)])

    def _claim_boxes(self, dims: Dims, others: list[Dims]) -> None:
        """Name boxes of four numbers, where another result has scores of as many."""
        factors = self.factors
        given = {
            factors.find(dim[0])
            for operand in self.graph.input_operands
            for dim in self.dims.get(operand.name, ())
        }
        for other in others:
            same = factors.find(dims[-2][0]) == factors.find(other[-2][0])
            # Heads of SSD and RetinaNet concatenate the boxes of all scales, each for itself.
            count = factors.size(dims[-2])
            alike = count == factors.size(other[-2]) and (count or 0) > 1
            unknown = {factors.kind(each[-2][0]) for each in (dims, other)} == {Kind.UNKNOWN}
            if same and factors.find(dims[-2][0]) in given:
                continue  # four numbers for each token of a sequence that the model is given
            if same or (alike and unknown):
                factors.claim(dims[-1], Kind.COORDINATE, Rank.STATED)
                for each in (dims, other):
                    factors.claim(each[-2], Kind.BOX, Rank.STATED)
                if not same or len(others) == 1:
                    factors.claim(other[-1], Kind.CLASS, Rank.STATED)

    def _read_by_linear(self) -> set[int]:
        """Return the dimensions that linear layers replace."""
        read = [
            self.dims.get(operator.inputs[0].name, ())
            for operator in self.graph.operators
            if operator.type in _LINEAR and operator.inputs
        ]
        return {self.factors.find(dims[-1][0]) for dims in read if dims}

    def _claim_vector(self, operand: RuntimeOperand, dims: Dims) -> None:
        """Name classes without a batch; files of ncnn have no names of modules."""
        producer = operand.producer
        if producer is not None and producer.type in SOFTMAX and producer.inputs:
            producer = producer.inputs[0].producer
        if not self.has_batch and dims and producer is not None and producer.type in _LINEAR:
            self.factors.claim(dims[0], Kind.CLASS, Rank.STATED)

    def _claim_classes(self, operand: RuntimeOperand, dims: Dims, read: set[int]) -> None:
        """Name classes or a vocabulary, for which a result has a score each.

        No linear layer of the set `read` reads them.
        """
        producer = operand.producer
        is_softmax = producer is not None and producer.type in SOFTMAX | _LOG_SOFTMAX
        layer = _scoring_layer(operand)
        made = self._dims_of(layer.outputs) if layer is not None else ()
        if layer is None or not made:
            return
        if self.factors.leaves(made[-1]) != self.factors.leaves(dims[-1]):
            return
        if self.factors.find(made[-1][0]) in read:
            return  # features, to which each layer adds
        if self._scores_words(layer, dims[-1]):
            self.factors.claim(dims[-1], Kind.VOCABULARY, Rank.STATED)
        elif is_softmax or _is_head(layer) or self._is_only_result(layer, dims):
            self.factors.claim(dims[-1], Kind.CLASS, Rank.STATED)

    def _scores_words(self, layer: RuntimeOperator, dim: Dim) -> bool:
        """Whether a layer has a score for each word, as an embedding has a row for each."""
        is_head = bool(self.vocabularies) and "lm_head" in layer.name
        return is_head or self.factors.size(dim) in self.vocabularies

    def _is_only_result(self, layer: RuntimeOperator, dims: Dims) -> bool:
        """Whether a layer without a name of its own gives the one result for each sample."""
        is_only = len(dims) == 2 and len(self.graph.output_operands) == 1
        return is_only and _is_nameless(layer)

    # The user's layouts

    def _override(self, name: str, layout: Layout, inferred: Layout) -> None:
        """Apply the axes in which the user's layout differs from the inferred one."""
        for dim, axis, before in zip(self.dims[name], layout.axes, inferred.axes, strict=True):
            if len(dim) == 1 and axis != before and axis.kind is not Kind.UNKNOWN:
                self._assign(dim[0], axis)

    def _assign(self, factor: int, axis: Axis) -> None:
        """Give a factor the meaning of an axis, and its structure if the factor has none."""
        factors = self.factors
        factors.claim((factor,), _OWN_KINDS.get(axis.kind, axis.kind), Rank.USER)
        if axis.segments:
            segments = tuple([self._make(segment) for segment in axis.segments])
            if sum([factors.size(dim) or 0 for dim in segments]) == factors.sizes[factor]:
                factors.segments[factors.find(factor)] = segments
        elif axis.factors:
            made = self._make(axis)
            if factors.size(made) == factors.sizes[factor]:
                factors.unify((factor,), made)

    def _make(self, axis: Axis) -> Dim:
        made: list[int] = []
        for part in axis.factors or (axis,):
            made.append(self.factors.make(part.size))
            if part.kind in SPATIAL:
                self.factors.claim((made[-1],), part.kind, Rank.USER)
        return tuple(made)


def _read_by(operator: RuntimeOperator) -> tuple[RuntimeOperand, ...]:
    """Return the operands of an operator; of indices those that their list has."""
    if operator.type not in _INDEXED or len(operator.inputs) < 2:
        return tuple(operator.inputs)
    listing = operator.inputs[1].producer
    if listing is None or listing.type != "pnnx.Expression":
        return tuple(operator.inputs)
    try:
        root = parse(expression_text(listing.params.get("expr"))).root
    except ExpressionError:
        return tuple(operator.inputs)
    items = root.items if isinstance(root, ListNode) else ()
    # A single index may be computed in its list.
    single = len(items) == len(listing.inputs) == 1
    places = [item.operand for item in items if isinstance(item, OperandRef)]
    in_order = places == [*range(len(items))] and len(items) == len(listing.inputs)
    indices = listing.inputs if single or in_order else operator.inputs[1:2]
    return (operator.inputs[0], *indices, *operator.inputs[2:])


def _scoring_layer(operand: RuntimeOperand) -> RuntimeOperator | None:
    """Return the linear layer that gives a result, before a softmax and what joins heads."""
    producer = operand.producer
    if producer is not None and producer.type in SOFTMAX | _LOG_SOFTMAX and producer.inputs:
        producer = producer.inputs[0].producer
    for _ in range(_MOST_JOINING):  # a result such as the mean of two heads
        if producer is None or producer.type not in _JOINING or not producer.inputs:
            break
        producer = producer.inputs[0].producer
    if producer is None or not (producer.type in _LINEAR or _has_constant(producer)):
        return None
    return producer


def _is_head(layer: RuntimeOperator) -> bool:
    """Whether a layer is named like one that classifies."""
    return any(word in layer.name.lower() for word in _HEADS)


def _is_nameless(operator: RuntimeOperator) -> bool:
    """Whether a linear layer lost its name, and has a bias, unlike most projections."""
    return operator.name.startswith("F_linear") and operator.params.get("bias") is True


def _has_constant(product: RuntimeOperator) -> bool:
    """Whether an operator multiplies by a matrix of the file, as a linear layer does."""
    is_product = product.type == "torch.matmul" and product.inputs
    table = product.inputs[-1].producer if is_product else None
    return table is not None and table.is_constant


def _place_of(operator: RuntimeOperator, rank: int) -> int | None:
    """Return the dimension along which an operator works; None if there is no such one."""
    dim = operator.params.get("dim", -1)
    return dim % rank if isinstance(dim, int) and -rank <= dim < rank else None


def _weighs(product: RuntimeOperator) -> bool:
    """Whether a product weighs positions by what a softmax gave, perhaps shifted or padded."""
    operator = product
    for _ in range(_MOST_WEIGHING):
        producer = operator.inputs[0].producer if operator.inputs else None
        if producer is None or producer.type in PRODUCTS | _LINEAR:
            return False
        if producer.type in SOFTMAX:
            return True
        operator = producer
    return False


def _are_sorted(choice: RuntimeOperator) -> bool:
    """Whether the chosen places are sorted afterwards, so that equal ones follow each other."""
    readers = list(choice.outputs[-1].consumers) if choice.outputs else []
    flat = [each.outputs[0] for each in readers if each.type in _SHIFTING and each.outputs]
    readers += [reader for operand in flat for reader in operand.consumers]
    return any(each.type in _SORTS for each in readers)


def _is_shifted(product: RuntimeOperator, count: int, distances: int) -> bool:
    """Whether rows of scores are moved against each other by a padding and a reshape.

    Rows are then one position longer or shorter than the scores of a query.
    """
    padded = {(distances, count), (distances + 1, count), (count + 1, distances)}
    waiting = [*product.outputs]
    for _ in range(_MOST_SHIFTING):
        readers = [each for operand in waiting for each in operand.consumers]
        waiting = [
            each.outputs[0] for each in readers if each.type in _SHIFTING and each.outputs
        ]
        if any(each.shape and each.shape[-2:] in padded for each in waiting):
            return True
    return False


def _stated_shape(operand: RuntimeOperand) -> tuple[Size, ...] | None:
    """Return the shape that a reshape gives by its parameter; None if that is open."""
    producer = operand.producer
    if producer is None or producer.type not in _RESHAPES:
        return None
    shape = producer.params.get("shape")
    if not isinstance(shape, tuple):
        return None
    sizes = tuple([size for size in shape if isinstance(size, int) and size > 0])
    return sizes if len(sizes) == len(shape) else None
