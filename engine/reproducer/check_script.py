"""Runs the operators in this folder and compares their outputs with the expected ones.

    python check.py [--tolerance NUMBER] [--layers FILE ...]

Needs NumPy, which computes the common operators. Runs Kuiper Studio, PyTorch and ncnn too, as
far as they are installed; ncnn reads a pair reproducer.ncnn.param and .bin beside this file, or
runs in Kuiper Studio. Nothing in the files is executed. Exit status: 0 the same, 1 differences, 2 nothing could be checked.
"""

import argparse
import importlib
import inspect
import math
import operator as arithmetic
import re
import sys
import zipfile
from pathlib import Path

import numpy as np

from engine.reproducer.numpy_operators import ELEMENTWISE, TOLD_BY_WEIGHTS, numpy_function

FOLDER = Path(__file__).resolve().parent
PARAM = FOLDER / "reproducer.pnnx.param"
WEIGHTS = FOLDER / "reproducer.pnnx.bin"
NCNN = FOLDER / "reproducer.ncnn.param"
INT_MAX = 2**31 - 1

# Functions that the file may name. None reads files or creates large tensors by itself.
MODULES = frozenset(
    """
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
    AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d BatchNorm1d BatchNorm2d BatchNorm3d CELU
    ChannelShuffle ConstantPad1d ConstantPad2d ConstantPad3d Conv1d Conv2d Conv3d
    ConvTranspose1d ConvTranspose2d ConvTranspose3d Dropout Dropout1d Dropout2d Dropout3d ELU
    Embedding Flatten Fold GELU GLU GRU GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh
    Identity InstanceNorm1d InstanceNorm2d InstanceNorm3d LPPool1d LPPool2d LSTM LayerNorm
    LeakyReLU Linear LocalResponseNorm LogSigmoid LogSoftmax MaxPool1d MaxPool2d MaxPool3d Mish
    MultiheadAttention PReLU PixelShuffle PixelUnshuffle RMSNorm RNN ReLU ReLU6 ReflectionPad1d
    ReflectionPad2d ReplicationPad1d ReplicationPad2d ReplicationPad3d SELU SiLU Sigmoid Softmax
    Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold Unflatten Unfold
    Upsample UpsamplingBilinear2d UpsamplingNearest2d ZeroPad2d
    """.split()
)
FUNCTIONS = frozenset(
    """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d affine_grid avg_pool1d avg_pool2d avg_pool3d
    batch_norm celu conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d elu
    embedding fold gelu glu grid_sample group_norm hardshrink hardsigmoid hardswish hardtanh
    instance_norm interpolate layer_norm leaky_relu linear local_response_norm log_softmax
    logsigmoid lp_pool1d lp_pool2d max_pool1d max_pool2d max_pool3d mish normalize one_hot pad
    pairwise_distance cosine_similarity pixel_shuffle pixel_unshuffle prelu relu relu6 rms_norm
    scaled_dot_product_attention selu sigmoid silu softmax softmin softplus softshrink softsign
    tanh tanhshrink threshold unfold upsample upsample_bilinear upsample_nearest
    """.split()
)
TENSOR_FUNCTIONS = frozenset(
    """
    abs acos acosh add addcdiv addcmul addmm all amax amin any argmax argmin asin asinh atan
    atan2 atanh baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor block_diag bmm
    broadcast_tensors cat ceil chunk clamp clone column_stack complex concat conj cos cosh cross
    cummax cummin cumprod cumsum diag diff div dot dstack einsum eq erf erfc exp exp2 expm1
    fill flatten flip floor floor_divide fmod frac gather ge gt hstack imag index_select isfinite
    isinf isnan kron le lerp lgamma log log10 log1p log2 logaddexp logical_and logical_not logical_or
    logical_xor logsumexp lt masked_fill masked_select matmul max maximum mean median min
    minimum mm movedim mul mv narrow ne neg negative norm outer permute polar positive pow prod
    real reciprocal remainder repeat_interleave reshape roll round rsqrt rsub scatter scatter_add select sigmoid
    sign sin sinh sort split sqrt square squeeze stack std std_mean stft istft sub sum swapaxes t take tan
    tanh tensor_split tensordot tile topk transpose tril triu trunc unbind unflatten unsqueeze
    var var_mean view_as_complex view_as_real vstack where
    """.split()
)
TRANSFORMS = frozenset(
    """
    fft fft2 fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft
    irfft2 irfftn rfft rfft2 rfftn
    """.split()
)
METHODS = TENSOR_FUNCTIONS | frozenset(
    """
    contiguous expand expand_as masked_fill repeat reshape_as select to type_as unfold view
    view_as
    """.split()
)
TAKE_LISTS = frozenset(
    "block_diag broadcast_tensors cat column_stack concat dstack hstack stack vstack".split()
)
TAKE_SIZES = frozenset({"expand", "repeat", "reshape", "view"})
ARITHMETIC = {
    "add": arithmetic.add, "sub": arithmetic.sub, "mul": arithmetic.mul,
    "div": arithmetic.truediv, "floor_divide": arithmetic.floordiv, "pow": arithmetic.pow,
    "remainder": arithmetic.mod, "neg": arithmetic.neg, "eq": arithmetic.eq,
    "ne": arithmetic.ne, "lt": arithmetic.lt, "le": arithmetic.le, "gt": arithmetic.gt,
    "ge": arithmetic.ge, "and": arithmetic.and_, "or": arithmetic.or_, "xor": arithmetic.xor,
    "lshift": arithmetic.lshift, "rshift": arithmetic.rshift,
}  # fmt: skip
OF_EXPRESSIONS = frozenset(
    """
    abs acos acosh asin asinh atan atan2 atanh ceil cos cosh erf exp expm1 floor fmod log log10 log1p
    logaddexp max maximum min minimum round rsqrt sign sin sinh sqrt square tan tanh trunc
    """.split()
)
DTYPES = {
    "f32": "<f4", "f64": "<f8", "f16": "<f2", "i32": "<i4", "i64": "<i8", "i16": "<i2",
    "i8": "i1", "u8": "u1", "bool": "?", "c64": "<c8", "c128": "<c16", "bf16": "<u2",
}  # fmt: skip


class NotCheckedError(Exception):
    """A library cannot compute something; the text says what."""


# The pair


class Operator:
    """A line of the .param file, with its weights."""

    def __init__(self, words, archive):
        self.type, self.name = words[:2]
        count, outputs = int(words[2]), int(words[3])
        names = words[4 : 4 + count + outputs]
        self.inputs, self.outputs = names[:count], names[count:]
        self.arguments = [""] * count
        self.params, self.weights = {}, {}
        for word in words_of_parameters(words[4 + count + outputs :]):
            key, _, text = word.partition("=")
            if key.startswith("@"):
                self.weights[key[1:]] = read_weight(archive, f"{self.name}.{key[1:]}", text)
            elif key.startswith("$"):
                places = [i for i, name in enumerate(self.inputs) if name == text]
                self.arguments[next(i for i in places if not self.arguments[i])] = key[1:]
            elif not key.startswith("#"):
                self.params[key] = parse(text)


def words_of_parameters(words):
    """Join the words of a text that contains blanks."""
    joined = []
    for word in words:
        if "=" in word or not joined:
            joined.append(word)
        else:
            joined[-1] += " " + word
    return joined


def parse(text):
    """Return the value of a parameter."""
    if text in ("None", "()", "[]"):
        return None
    if text in ("True", "False"):
        return text == "True"
    if text[:1] + text[-1:] in ("()", "[]"):
        return tuple(parse(part) for part in text[1:-1].split(","))
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            pass
    return text


def read_weight(archive, name, text):
    """Return a weight of the .bin file."""
    sizes, _, kind = text.partition(")")
    shape = tuple(int(size) for size in sizes[1:].split(",") if size)
    if kind not in DTYPES:
        raise NotCheckedError(f"weight {name} is of dtype {kind}")
    dtype = np.dtype(DTYPES[kind])
    info = archive.getinfo(name)
    if info.compress_type or info.file_size != math.prod(shape) * dtype.itemsize:
        raise NotCheckedError(f"weight {name} has not the size that the .param file states")
    array = np.frombuffer(archive.read(info), dtype).copy().reshape(shape)
    if kind == "bf16":
        return (array.astype("<u4") << np.uint32(16)).view("<f4")
    return array


def read_operators():
    """Return the operators of the pair, in order."""
    lines = PARAM.read_text(encoding="utf-8").split("\n")[2:]
    with zipfile.ZipFile(WEIGHTS) as archive:
        operators = [Operator(line.split(), archive) for line in lines if line.strip()]
    leave_tied_inputs(operators)
    return operators


def leave_tied_inputs(operators):
    """Leave the inputs of modules that repeat a weight, which pnnx adds for shared ones."""
    shared = {
        o.outputs[0]: next(iter(o.weights.values()))
        for o in operators
        if o.type == "pnnx.Attribute"
    }
    for operator in operators:
        if operator.type.startswith("nn."):
            kept = [
                place
                for place, name in enumerate(operator.inputs)
                if not any(
                    np.array_equal(shared.get(name), weight)
                    for weight in operator.weights.values()
                )
            ]
            operator.inputs = [operator.inputs[place] for place in kept]
            operator.arguments = [operator.arguments[place] for place in kept]


# Computing


class Expression:
    """Evaluates the text of a pnnx.Expression with a fixed list of functions."""

    def __init__(self, text, inputs, compute):
        self.tokens = re.findall(r"@\d+|[\[\](),]|[^\[\](),@\s]+", text)
        self.inputs, self.compute, self.position = inputs, compute, 0

    def value(self):
        """Return the value of the subexpression at the position."""
        token = self.take()
        if token.startswith("@"):
            return self.inputs[int(token[1:])]
        if token == "[":
            return self.members("]")
        if self.tokens[self.position : self.position + 1] == ["("]:
            self.position += 1
            return self.call(token, self.members(")"))
        if token in OF_EXPRESSIONS and self.tokens[self.position : self.position + 1] == [","]:
            self.position += 1  # pnnx writes some functions of one argument so
            return self.call(token, [self.value()])
        number = parse(token)
        if isinstance(number, str):
            raise NotCheckedError(f"{token!r} in an expression")
        return number

    def take(self):
        self.position += 1
        return self.tokens[self.position - 1]

    def members(self, end):
        found = []
        while self.tokens[self.position] != end:
            if self.tokens[self.position] == ",":
                self.position += 1
            else:
                found.append(self.value())
        self.position += 1
        return found

    def call(self, name, values):
        if name in ARITHMETIC:
            return ARITHMETIC[name](*values)
        if name == "size":
            shape = values[0].shape
            return shape[values[1]] if len(values) > 1 else list(shape)
        if name in ("int", "float"):
            number = values[0]
            number = number.item() if hasattr(number, "item") else number
            return int(number) if name == "int" else float(number)
        if name in OF_EXPRESSIONS and any(hasattr(value, "dtype") for value in values):
            return self.compute(name, values)
        raise NotCheckedError(f"{name} in an expression")


class Run:
    """Computes the operators with a library, as far as it knows their types."""

    def __init__(self):
        self.values = {}
        self.unpacked = set()

    def run(self, operators, arrays):
        """Return the outputs; instead of an unknown one, the error that says why."""
        given = iter(operator_inputs(operators, arrays))
        self.unpacked = {o.inputs[0] for o in operators if o.type == "prim::TupleUnpack"}
        found = []
        for operator in operators:
            if operator.type == "pnnx.Input":
                results = [self.from_array(next(given))]
            elif operator.type == "pnnx.Output":
                found += flatten([self.values[name] for name in operator.inputs])
                continue
            else:
                results = self.results(operator)
            self.values.update(zip(operator.outputs, results))
        return [self.to_array(value) for value in found]

    def results(self, operator):
        """Return the values of the outputs, or why there are none."""
        inputs = [self.values[name] for name in operator.inputs]
        family, _, name = operator.type.partition(".")
        unknown = [value for value in flatten(inputs) if isinstance(value, NotCheckedError)]
        if unknown:
            return unknown[:1] * len(operator.outputs)
        try:
            if operator.type in OTHERS:
                result = OTHERS[operator.type](self, operator, inputs)
            else:
                result = self.compute(operator, family, name, inputs)
        except Exception as exc:
            error = NotCheckedError(f"{operator.type} {operator.name!r}: {one_line(exc)}")
            return [error] * len(operator.outputs)
        return self.spread(operator, family, result)

    def spread(self, operator, family, result):
        if operator.outputs[:1] and operator.outputs[0] in self.unpacked:
            return [result]
        if len(operator.outputs) > 1:
            return flatten([result])[: len(operator.outputs)]
        named = isinstance(result, tuple) and hasattr(result, "values")
        if isinstance(result, tuple) and result and (named or family in ("nn", "F")):
            return [result[0]]
        return [result]

    def slice(self, operator, inputs):
        """Slice by start, end and step along one or several dimensions."""
        if len(inputs) > 1:
            raise NotCheckedError("its bounds are computed")
        if "dim" in operator.params:
            rows = [[operator.params.get(k) for k in ("dim", "start", "end", "step")]]
            rows[0].append(INT_MAX)
        else:
            keys = ("dims", "starts", "ends", "steps", "selects")
            rows = list(zip(*(operator.params[key] for key in keys)))
        index = [slice(None)] * inputs[0].ndim
        for dim, start, end, step, select in rows:
            index[dim] = slice(start, end, step) if select == INT_MAX else select
        return inputs[0][tuple(index)]

    def expression(self, operator, inputs):
        expression = Expression(str(operator.params["expr"]), inputs, self.of_expression)
        result = expression.value()
        if expression.position != len(expression.tokens):
            raise NotCheckedError("it does not end where it should")
        return result


OTHERS = {
    "pnnx.Expression": Run.expression,
    "Tensor.slice": Run.slice,
    "pnnx.Attribute": lambda run, operator, _: next(iter(run.tensors(operator).values())),
    "prim::Constant": lambda _, operator, __: operator.params.get("value"),
    "prim::ListConstruct": lambda _, __, inputs: list(inputs),
    "prim::TupleConstruct": lambda _, __, inputs: tuple(inputs),
    "prim::ListUnpack": lambda _, __, inputs: inputs[0],
    "prim::TupleUnpack": lambda _, __, inputs: inputs[0],
}


class NumpyRun(Run):
    """Computes the operators with NumPy, by the functions above."""

    def from_array(self, array):
        return array

    def to_array(self, value):
        return value if isinstance(value, NotCheckedError) else np.asarray(value)

    def tensors(self, operator):
        """Return the weights of an operator."""
        return operator.weights

    def compute(self, operator, family, name, inputs):
        if operator.type == "torch.einsum":
            one = len(inputs) == 1 and isinstance(inputs[0], (list, tuple))
            return np.einsum(
                operator.params["equation"], *(inputs[0] if one else inputs), optimize=True
            )
        function = numpy_function(name)
        if function is None or family not in ("nn", "F", "torch", "Tensor"):
            raise NotCheckedError("NumPy has no function for the type")
        options = {
            key: value
            for key, value in operator.params.items()
            if value is not None and key not in TOLD_BY_WEIGHTS
        }
        if isinstance(options.get("bias"), bool):  # the weight has the numbers
            del options["bias"]
        options.update(operator.weights)
        if name in TAKE_LISTS:
            one = len(inputs) == 1 and isinstance(inputs[0], (list, tuple))
            return function(list(inputs[0]) if one else inputs, **options)
        known = inspect.signature(function).parameters
        plain = [v for key, v in zip(operator.arguments, inputs) if not key]
        named = {key: v for key, v in zip(operator.arguments, inputs) if key}
        first = next(iter(operator.arguments), "")
        if first and first not in known:  # what pnnx calls the first differs
            plain.insert(0, named.pop(first))
        return function(*plain, **options, **named)

    def of_expression(self, name, values):
        if name in ("max", "min"):
            name += "imum"
        return ELEMENTWISE[name](*values)


class TorchRun(Run):
    """Computes the operators with PyTorch."""

    def __init__(self, torch):
        super().__init__()
        self.torch = torch
        if hasattr(torch.backends, "mha"):  # it gives NaN for a query that no key is left for
            torch.backends.mha.set_fastpath_enabled(False)

    def run(self, operators, arrays):
        with self.torch.no_grad():
            return super().run(operators, arrays)

    def from_array(self, array):
        return self.torch.from_numpy(np.array(array))

    def to_array(self, value):
        if isinstance(value, NotCheckedError):
            return value
        if not isinstance(value, self.torch.Tensor):
            return np.asarray(value)
        value = value.resolve_conj().resolve_neg()
        return (value.float() if value.dtype == self.torch.bfloat16 else value).numpy()

    def compute(self, operator, family, name, inputs):
        if family == "nn" and name in MODULES:
            return self.module(operator, name, inputs)
        if family == "F" and name in FUNCTIONS:
            return self.function(getattr(self.torch.nn.functional, name), operator, inputs)
        if family == "torch" and name.startswith("fft.") and name[4:] in TRANSFORMS:
            return self.function(getattr(self.torch.fft, name[4:]), operator, inputs)
        if family == "torch" and name in TENSOR_FUNCTIONS:
            return self.tensor_function(operator, name, inputs)
        if family == "Tensor" and name in METHODS:
            return self.method(operator, name, inputs)
        raise NotCheckedError("this script does not know the type")

    def of_expression(self, name, values):
        tensors = [v for v in values if isinstance(v, self.torch.Tensor)]
        like = tensors[0].dtype
        return getattr(self.torch, name)(
            *[
                v if isinstance(v, self.torch.Tensor) else self.torch.tensor(v, dtype=like)
                for v in values
            ]
        )

    def options(self, operator):
        """Return parameters in the form that PyTorch expects."""
        options = {k: self.option(v) for k, v in operator.params.items() if k != "device"}
        size = options.get("output_size")
        if "daptive" in operator.type and isinstance(size, tuple):  # pnnx writes 0 for None
            options["output_size"] = tuple(each or None for each in size)
        return options

    def option(self, value):
        if not isinstance(value, str) or not value.startswith("torch."):
            return value
        found = getattr(self.torch, value[6:], None)
        kinds = (self.torch.dtype, self.torch.memory_format, self.torch.layout)
        if not isinstance(found, kinds):
            raise NotCheckedError(f"{value} is no dtype")
        return found

    def tensors(self, operator):
        """Return the weights of an operator."""
        return {key: self.torch.from_numpy(a) for key, a in operator.weights.items()}

    def function(self, function, operator, inputs):
        named = zip(operator.arguments, inputs)
        options = self.options(operator)
        options.update(self.tensors(operator))
        options.update((key, value) for key, value in named if key)
        return function(
            *[v for key, v in zip(operator.arguments, inputs) if not key], **options
        )

    def tensor_function(self, operator, name, inputs):
        function = getattr(self.torch, name)
        if name == "einsum":
            return function(operator.params["equation"], *inputs)
        if name not in TAKE_LISTS:
            return self.function(function, operator, inputs)
        if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
            inputs = list(inputs[0])
        if name in ("block_diag", "broadcast_tensors"):
            return function(*inputs)
        return function(inputs, **self.options(operator))

    def method(self, operator, name, inputs):
        if not hasattr(inputs[0], name):
            return self.tensor_function(operator, name, inputs)
        method = getattr(inputs[0], name)
        options = self.options(operator)
        if name in TAKE_SIZES and len(inputs) == 1 and len(options) == 1:
            return method(next(iter(options.values())) or ())
        named = dict(zip(operator.arguments[1:], inputs[1:]))
        if name in TAKE_SIZES or "" in named:
            return method(*inputs[1:], **options)
        try:
            return method(**named, **options)
        except TypeError:  # it takes positional arguments only
            return method(*inputs[1:], **options)

    def module(self, operator, name, inputs):
        with self.torch.device("meta"):  # no memory except the weights'
            module = getattr(self.torch.nn, name)(**self.options(operator)).eval()
        module.load_state_dict(self.tensors(operator), strict=False, assign=True)
        if any(parameter.is_meta for parameter in module.parameters()):
            raise NotCheckedError("weights are missing")
        if name == "MultiheadAttention":
            return self.attention(module, operator, inputs)
        if name == "LSTM" and len(inputs) == 3:
            inputs = [inputs[0], (inputs[1], inputs[2])]
        return module(*inputs)

    @staticmethod
    def attention(module, operator, inputs):
        plain = [v for key, v in zip(operator.arguments, inputs) if key != "attn_mask"]
        masks = [v for key, v in zip(operator.arguments, inputs) if key == "attn_mask"]
        if len(plain) > 3:
            raise NotCheckedError("it takes more than query, key and value")
        plain += plain[-1:] * (3 - len(plain))
        mask = masks[0] if masks else None
        return module(*plain, need_weights=len(operator.outputs) > 1, attn_mask=mask)


def operator_inputs(operators, arrays):
    """Return the arrays in the order of the inputs."""
    return [arrays[o.outputs[0]] for o in operators if o.type == "pnnx.Input"]


def flatten(value):
    """Return the members of nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        return [leaf for member in value for leaf in flatten(member)]
    return [value]


# Libraries


def installed(name):
    """Return a library."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise NotCheckedError(f"{name} is not installed") from None


def by_engine(inputs, expected, options, backend="numpy"):
    """Return the outputs of Kuiper Studio, and the session."""
    engine = installed("engine")
    if not hasattr(engine, "Session"):
        raise NotCheckedError("the package engine is not Kuiper Studio's")
    session = engine.Session(engine.load(PARAM, WEIGHTS), backend=backend)
    if session.graph.input_operands:
        session.feed(inputs)
    session.run()
    return session.outputs(), session


def by_numpy(inputs, expected, options):
    with np.errstate(all="ignore"):
        return NumpyRun().run(read_operators(), inputs)


def by_studio(inputs, expected, options):
    return by_engine(inputs, expected, options)[0]


def by_torch(inputs, expected, options):
    return TorchRun(installed("torch")).run(read_operators(), inputs)


def by_ncnn(inputs, expected, options):
    ncnn = installed("ncnn")
    if not NCNN.exists():
        outputs, session = by_engine(inputs, expected, options, "ncnn")
        if not any(record.backend == "ncnn" for record in session.records):
            raise NotCheckedError("Kuiper Studio has no kernel of ncnn for these operators")
        return outputs
    net = ncnn.Net()
    if net.load_param(str(NCNN)) or net.load_model(str(NCNN.with_suffix(".bin"))):
        raise NotCheckedError(f"ncnn cannot load {NCNN.name}")
    extractor = net.create_extractor()
    samples = [a[0] if a.ndim > 1 and len(a) == 1 else a for a in inputs.values()]
    for name, sample in zip(net.input_names(), samples):
        extractor.input(name, ncnn.Mat(np.ascontiguousarray(sample)))
    found = []
    for name, wanted in zip(net.output_names(), expected.values()):
        status, mat = extractor.extract(name)
        if status:
            raise NotCheckedError(f"ncnn has no output {name}")
        array = np.array(mat)
        same = array.size == wanted.size
        found.append(array.reshape(wanted.shape) if same else array)
    return found


CHECKS = {"numpy": by_numpy, "kuiper-studio": by_studio, "torch": by_torch, "ncnn": by_ncnn}


# The comparison


def compare(found, expected, tolerance):
    """Return the largest absolute and relative difference, and the verdict."""
    found = np.asarray(found)
    if found.shape != expected.shape:
        return math.inf, math.inf, f"shape {found.shape} instead of {expected.shape}"
    if not expected.size:
        return 0.0, 0.0, "same"
    exact = expected.dtype.kind not in "fc"
    kind = np.complex128 if "c" in found.dtype.kind + expected.dtype.kind else np.float64
    with np.errstate(all="ignore"):
        one, other = found.astype(kind), expected.astype(kind)
        distance = np.abs(one - other)
        equal = (found == expected) | (np.isnan(one) & np.isnan(other))
        distance = np.where(equal, 0.0, np.where(np.isnan(distance), np.inf, distance))
        sizes = np.abs(other)
        scale = float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))
        allowed = 0.0 if exact else tolerance * (min(1.0, scale) + sizes)
        beyond = ~equal & ((distance > allowed) | ~np.isfinite(distance) | exact)
    largest = float(distance.max())
    return largest, largest / (scale or 1.0), "differs" if beyond.any() else "same"


def rows_of(check, inputs, expected, options):
    """Return the rows of the table for one library, and whether it differs."""
    try:
        found = list(CHECKS[check](inputs, expected, options))
    except NotCheckedError as exc:
        return [(check, "", "", "", f"not checked: {one_line(exc)}")], None
    except Exception as exc:
        if check != "kuiper-studio":
            return [(check, "", "", "", f"not checked: {one_line(exc)}")], None
        return [(check, "", "", "", f"failed: {one_line(exc)}")], True
    unknown = [error for error in found if isinstance(error, NotCheckedError)]
    if len(found) != len(expected):
        if unknown:
            return [(check, "", "", "", f"not checked: {unknown[0]}")], None
        text = f"{len(found)} outputs instead of {len(expected)}"
        return [(check, "", "", "", text)], True
    rows, differs = [], None if len(unknown) == len(found) else False
    for name, array in zip(expected, found):
        if isinstance(array, NotCheckedError):
            rows.append((check, name, "", "", f"not checked: {array}"))
            continue
        largest, relative, verdict = compare(array, expected[name], options.tolerance)
        rows.append((check, name, f"{largest:.3g}", f"{relative:.3g}", verdict))
        differs = differs or verdict != "same"
    return rows, differs


def one_line(error):
    return " ".join(str(error).split()) or type(error).__name__


def read_arrays(path):
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tolerance", type=float, default=1e-3, help="default %(default)s")
    parser.add_argument(
        "--layers", nargs="+", default=[], metavar="FILE",
        help="your own layers for Kuiper Studio, which are executed",
    )  # fmt: skip
    options = parser.parse_args()
    if options.layers:
        for file in options.layers:
            installed("engine").load_layers(file)
    inputs = read_arrays(FOLDER / "inputs.npz")
    expected = read_arrays(FOLDER / "expected.npz")
    table = [("by", "output", "max abs", "max rel", "verdict")]
    verdicts = []
    for check in CHECKS:
        rows, differs = rows_of(check, inputs, expected, options)
        table += rows
        verdicts.append(differs)
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        print("  ".join([*cells, row[4]]).rstrip())
    if True in verdicts:
        return 1
    return 0 if False in verdicts else 2


if __name__ == "__main__":
    sys.exit(main())
