"""Names of operator types in PyTorch or ONNX, and the pages that document them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["page_of", "reference_of"]

_DOCS: Final = "https://docs.pytorch.org"

# Longest first, so that the most specific prefix matches.
_PREFIXES: Final = (
    ("pnnx.custom_op.torchvision.", "torchvision.ops."),
    ("pnnx.custom_op.", "torch.ops."),
    ("nn.intrinsic.quantized.", "torch.ao.nn.intrinsic.quantized."),
    ("nn.quantized.", "torch.ao.nn.quantized."),
    ("torchvision::", "torchvision.ops."),
    ("quantized::", "torch.ops.quantized."),
    ("torchaudio.", "torchaudio."),
    ("torchvision.", "torchvision."),
    ("Tensor.", "torch.Tensor."),
    ("torch.", "torch."),
    ("aten::", "torch.ops.aten."),
    ("nn.", "torch.nn."),
    ("F.", "torch.nn.functional."),
)

# Types whose name in PyTorch differs from pnnx or TorchScript, or that have none there.
_OTHERWISE: Final = {
    "F.dropoutnd": "torch.nn.functional.dropout",
    "Tensor.copy": "torch.Tensor.copy_",
    "Tensor.fill": "torch.Tensor.fill_",
    "Tensor.index": "",
    "Tensor.rsub": "torch.rsub",
    "Tensor.slice": "",
    "Tensor.slice_copy": "",
    "aten::__invert__": "torch.ops.aten.bitwise_not",
    "nn.quantized.cat": "torch.ao.nn.quantized.QFunctional.cat",
}

# Names that exist in PyTorch but have no page of their own, nor one in ``F.``.
_WITHOUT_PAGE: Final = frozenset(
    {
        "torch.Tensor.clamp_max",
        "torch.Tensor.clamp_min",
        "torch.Tensor.log_softmax",
        "torch.Tensor.relu",
        "torch.Tensor.split_with_sizes",
        "torch.ao.nn.quantized.DeQuantize",
        "torch.ao.nn.quantized.QFunctional.cat",
        "torch.ao.nn.quantized.Quantize",
        "torch.clamp_max",
        "torch.clamp_min",
        "torch.detach",
        "torch.feature_dropout",
        "torch.fill",
        "torch.frobenius_norm",
        "torch.index_fill",
        "torch.index_put",
        "torch.masked_fill",
        "torch.masked_scatter",
        "torch.rsub",
        "torch.split_with_sizes",
    }
)

# Operators of ONNX's main domain
_ONNX: Final = frozenset(
    """
    Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention
    AveragePool BatchNormalization Bernoulli BitCast BitShift BitwiseAnd BitwiseNot
    BitwiseOr BitwiseXor BlackmanWindow Cast CastLike CausalConvWithState Ceil Celu
    CenterCropPad Clip Col2Im Compress Concat ConcatFromSequence Constant ConstantOfShape
    Conv ConvInteger ConvTranspose Cos Cosh CumProd CumSum DFT DeformConv DepthToSpace
    DequantizeLinear Det Div Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand
    EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool
    GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization
    HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity If ImageDecoder
    InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual
    LinearAttention Log LogSoftmax Loop LpNormalization LpPool MatMul MatMulInteger Max
    MaxPool MaxRoiPool MaxUnpool Mean MeanVarianceNormalization MelWeightMatrix Min Mish Mod
    Mul Multinomial Neg NegativeLogLikelihoodLoss NonMaxSuppression NonZero Not OneHot
    Optional OptionalGetElement OptionalHasElement Or PRelu Pad Pow QLinearConv
    QLinearMatMul QuantizeLinear RMSNormalization RNN RandomNormal RandomNormalLike
    RandomUniform RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
    RegexFullMatch Relu Reshape Resize ReverseSequence RoiAlign RotaryEmbedding Round STFT
    Scan Scatter ScatterElements ScatterND Selu SequenceAt SequenceConstruct SequenceEmpty
    SequenceErase SequenceInsert SequenceLength SequenceMap Shape Shrink Sigmoid Sign Sin
    Sinh Size Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split
    SplitToSequence Sqrt Squeeze StringConcat StringNormalizer StringSplit Sub Sum SwiGLU
    Swish Tan Tanh TensorScatter TfIdfVectorizer ThresholdedRelu Tile TopK Transpose Trilu
    Unique Unsqueeze Upsample Where Xor
    """.split()  # noqa: SIM905 - a name for each line would be two hundred
)


def reference_of(operator_type: str) -> str:
    """Return the name of an operator type in PyTorch: ``torch.nn.Conv2d`` for ``nn.Conv2d``.

    Returns
    -------
    str
        ``ONNX ReduceMax`` for a type that pnnx keeps from ONNX; ``""`` if neither has it.
    """
    if operator_type in _OTHERWISE:
        return _OTHERWISE[operator_type]
    if operator_type in _ONNX:
        return f"ONNX {operator_type}"
    for prefix, name in _PREFIXES:
        if operator_type.startswith(prefix):
            return name + operator_type.removeprefix(prefix)
    return ""


def page_of(operator_type: str, others: Iterable[str] = ()) -> str:
    """Return the address of the page that documents an operator type.

    Parameters
    ----------
    operator_type : str
    others : iterable of str
        Types that the same code computes. Their page is used if the type has none.

    Returns
    -------
    str
        ``""`` if none is known.
    """
    near = sorted(others, key=_rank)
    functional = f"F.{operator_type.removeprefix('torch.')}"
    if operator_type.startswith("torch.") and functional in near:
        return _own_page(reference_of(functional))  # the same without a page of its own
    pages = (_own_page(reference_of(name)) for name in (operator_type, *near))
    return next((page for page in pages if page), "")


def _rank(operator_type: str) -> tuple[int, str]:
    """Rank functions before methods, whose pages only refer to the functions."""
    kinds = ("F.", "torch.", "Tensor.")
    places = [place for place, kind in enumerate(kinds) if operator_type.startswith(kind)]
    return (places[0] if places else len(kinds), operator_type)


def _own_page(reference: str) -> str:
    if reference in _WITHOUT_PAGE or reference.startswith("torch.ops."):
        return ""
    if reference.startswith("ONNX "):
        return f"https://onnx.ai/onnx/operators/onnx__{reference.removeprefix('ONNX ')}.html"
    library = {"torch": "docs", "torchvision": "vision", "torchaudio": "audio"}.get(
        reference.partition(".")[0]
    )
    return f"{_DOCS}/{library}/stable/generated/{reference}.html" if library else ""
