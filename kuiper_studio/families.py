"""Operator families, by which the window colours and labels operators.

One table from operator type to family; colours are tokens of the same name in the theme.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

__all__ = ["FAMILIES", "Family", "family_of"]


@dataclass(frozen=True, slots=True)
class Family:
    """A family of operators.

    Attributes
    ----------
    token : str
        Name of the theme colour.
    label : str
        The four or five letters painted beside the colour.
    """

    token: str
    label: str


FAMILIES: Final = {
    token: Family(token, label)
    for token, label in {
        "io": "I/O",
        "conv": "CONV",
        "lin": "LIN",
        "act": "ACT",
        "norm": "NORM",
        "pool": "POOL",
        "expr": "EXPR",
        "shape": "SHAPE",
        "attn": "ATTN",
        "red": "RED",
    }.items()
}

# Patterns of the bare name (after the last dot, lower case, no underscores), space separated.
# The first family with a pattern that matches wins.
_RULES: Final = {
    "io": """
        input output attribute memorydata tupleconstruct tupleunpack listconstruct listunpack
    """,
    "attn": "(multihead)?attention scaleddotproductattention sdpa rotaryembed(ding)?",
    "conv": "(quantized)?(lazy)?(de|deform(able)?)?(qlinear)?conv.*",
    "lin": """
        linear bilinear matmul bmm mm addmm baddbmm mv dot einsum embedding lstm gru rnn
        gemm matmulinteger qlinearmatmul innerproduct embed
    """,
    "norm": r".+norm(alization)?(\dd)? normalize lrn mvn",
    "pool": r"""
        .*pool(ing)?(\dd)? roialign spp upsample.* interp(olate)? gridsample
        affinegrid pixel(un)?shuffle resize depthtospace spacetodepth
    """,
    "act": r"""
        .*relu6? sigmoid hardsigmoid logsigmoid silu hardswish tanh hardtanh tanhshrink gelu
        elu celu selu glu mish softmax logsoftmax softmin softmax2d softplus softsign
        softshrink hardshrink threshold (native|feature)?dropout(\dd|nd)? alphadropout
        featurealphadropout gumbelsoftmax swish bnll shrink
    """,
    "red": """
        mean sum prod max min amax amin argmax argmin std var logsumexp cumsum cumprod topk
        sort argsort all any median aminmax norm reduce.* hardmax
        reduction cumulativesum
    """,
    "shape": r"""
        view viewas reshape reshapeas permute transpose t flatten unflatten cat stack slice
        slicecopy split tensorsplit chunk unbind pad .*pad\dd squeeze unsqueeze expand
        expandas repeat select index narrow roll flip tile contiguous clone fold unfold
        channelshuffle sliceindexes gather.* scatter.* size identity movedim to type
        broadcasttensors concat trilu cast shape compress reversesequence centercroppad
        padding crop expanddims packing deepcopy copyto noop shufflechannel reorg
    """,
    "expr": """
        expression add sub mul div pow sqrt rsqrt exp log abs neg clamp where eq ne lt le gt
        ge maximum minimum floor ceil round sin cos tan reciprocal square binaryop
        unaryop eltwise power scale bias clip absval erf
    """,
}
_COMPILED: Final = tuple(
    (token, re.compile(f"(?:{'|'.join(patterns.split())})$"))
    for token, patterns in _RULES.items()
)


@lru_cache(maxsize=4096)  # large models have few types
def family_of(operator_type: str) -> Family:
    """Return the family of a type; an unknown one is labelled with its first five letters."""
    bare = operator_type.rpartition(".")[2].rpartition("::")[2].lower().replace("_", "")
    for token, rule in _COMPILED:
        if rule.match(bare):
            return FAMILIES[token]
    return Family("other", bare[:5].upper() or "OTHER")
