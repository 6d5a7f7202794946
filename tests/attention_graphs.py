"""Small models with attention for tests, and a slow attention to compare with."""

from __future__ import annotations

import math

import numpy as np

import engine
from engine.axes import infer_layouts


def slow_weights(query, key, mask=None, scale=None):
    """Softmax of one head's scores, one query and one key at a time, in float64."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    weights = np.zeros((len(query), len(key)))
    for row, one in enumerate(query):
        scores = []
        for column, other in enumerate(key):
            score = sum(float(a) * float(b) for a, b in zip(one, other, strict=True)) * scale
            if mask is not None and mask.dtype == bool:
                score = score if mask[row, column] else -math.inf
            elif mask is not None:
                score += float(mask[row, column])
            scores.append(score)
        peak = max(scores)
        shares = [math.exp(score - peak) for score in scores]
        weights[row] = [share / sum(shares) for share in shares]
    return weights


class Run:
    """A run of a model with NumPy, and the layouts of its operands."""

    def __init__(self, path, *inputs):
        self.graph = engine.load(path)
        self.session = engine.Session(self.graph, backend="numpy")
        self.session.feed(inputs)
        self.session.run()
        self.layouts = infer_layouts(self.graph)


def module_line(operand, result, *, name="attn", shape=(1, 5, 8), heads=2, batch_first=True):
    """Line of an ``nn.MultiheadAttention`` of one operand."""
    size = shape[-1]
    text = ",".join(map(str, shape))
    return (
        f"nn.MultiheadAttention {name} 1 1 {operand} {result} add_bias_kv=False "
        f"add_zero_attn=False batch_first={batch_first} bias=True embed_dim={size} kdim={size} "
        f"num_heads={heads} vdim={size} @in_proj_bias=({3 * size})f32 "
        f"@in_proj_weight=({3 * size},{size})f32 @out_proj.bias=({size})f32 "
        f"@out_proj.weight=({size},{size})f32 #{operand}=({text})f32 #{result}=({text})f32"
    )


def module_weights(size=8, *, name="attn", seed=3):
    """Weights of that module, which make scores of some contrast."""
    rng = np.random.default_rng(seed)

    def some(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    return {
        f"{name}.in_proj_bias": some(3 * size),
        f"{name}.in_proj_weight": some(3 * size, size) / 2,
        f"{name}.out_proj.bias": some(size),
        f"{name}.out_proj.weight": some(size, size) / 2,
    }


# A picture of 8x8 pixels in patches of 2x2: 16 tokens with a class token before them.
VIT_TOKENS = 17
VIT_SIZE = 8


def vit_lines(blocks=2):
    """Lines of a vision transformer that is nothing but attention."""
    shape = f"(1,{VIT_TOKENS},{VIT_SIZE})f32"
    lines = [
        "pnnx.Input in 0 1 x #x=(1,3,8,8)f32",
        (
            "nn.Conv2d patches 1 1 x p bias=False dilation=(1,1) groups=1 in_channels=3 "
            f"kernel_size=(2,2) out_channels={VIT_SIZE} padding=(0,0) padding_mode=zeros "
            f"stride=(2,2) @weight=({VIT_SIZE},3,2,2)f32 #p=(1,{VIT_SIZE},4,4)f32"
        ),
        f"torch.flatten f 1 1 p f start_dim=2 end_dim=-1 $input=p #f=(1,{VIT_SIZE},16)f32",
        f"torch.transpose t 1 1 f t dim0=1 dim1=2 $input=f #t=(1,16,{VIT_SIZE})f32",
        f"pnnx.Attribute cls_token 0 1 c @data=(1,1,{VIT_SIZE})f32 #c=(1,1,{VIT_SIZE})f32",
        f"torch.cat join 2 1 c t a0 dim=1 #a0={shape}",
    ]
    for block in range(blocks):
        one, two, three = f"a{block}", f"m{block}", f"a{block + 1}"
        lines += [
            module_line(one, two, name=f"block{block}", shape=(1, VIT_TOKENS, VIT_SIZE)),
            (
                f"pnnx.Expression add{block} 2 1 {one} {two} {three} expr=add(@0,@1) "
                f"#{one}={shape} #{two}={shape} #{three}={shape}"
            ),
        ]
    return [*lines, f"pnnx.Output out 1 0 a{blocks} #a{blocks}={shape}"]


def vit_weights(blocks=2):
    """Weights for `vit_lines`."""
    rng = np.random.default_rng(7)
    found = {
        "patches.weight": rng.standard_normal((VIT_SIZE, 3, 2, 2)).astype(np.float32),
        "cls_token.data": rng.standard_normal((1, 1, VIT_SIZE)).astype(np.float32),
    }
    for block in range(blocks):
        found |= module_weights(VIT_SIZE, name=f"block{block}", seed=block)
    return found


def text_lines(length=6, heads=2, size=4):
    """Lines of attention written out over tokens: softmax(q @ k.T / sqrt(d)) @ v."""
    shape, scores = f"(1,{heads},{length},{size})f32", f"(1,{heads},{length},{length})f32"
    lines = [f"pnnx.Input in{n} 0 1 {n} #{n}={shape}" for n in "qkv"]
    turned = f"(1,{heads},{size},{length})f32"
    return [
        *lines,
        f"torch.transpose t 1 1 k kt dim0=-2 dim1=-1 $input=k #k={shape} #kt={turned}",
        f"torch.matmul first 2 1 q kt s $input=q $other=kt #s={scores}",
        f"pnnx.Expression scale 1 1 s z expr=div(@0,{math.sqrt(size)}) #s={scores} #z={scores}",
        f"F.softmax soft 1 1 z w dim=-1 $input=z #z={scores} #w={scores}",
        f"torch.matmul second 2 1 w v o $input=w $other=v #o={shape}",
        f"pnnx.Output out 1 0 o #o={shape}",
    ]


def window_lines():
    """Lines of two blocks in windows of 2x2 of a grid of 4x4; the second one's are shifted."""
    parts, turned = "#{0}=(1,2,2,2,2,8)f32", "dims=(0,1,3,2,4,5)"

    def block(number, source, result):
        at = [f"{name}{number}" for name in "abcdefg"]
        return [
            (
                f"Tensor.reshape r{number}0 1 1 {source} {at[0]} shape=(1,2,2,2,2,8) "
                f"$input={source} {parts.format(at[0])}"
            ),
            (
                f"Tensor.permute r{number}1 1 1 {at[0]} {at[1]} {turned} $input={at[0]} "
                f"{parts.format(at[1])}"
            ),
            (
                f"Tensor.reshape r{number}2 1 1 {at[1]} {at[2]} shape=(4,4,8) $input={at[1]} "
                f"#{at[2]}=(4,4,8)f32"
            ),
            module_line(at[2], at[3], name=f"block{number}", shape=(4, 4, 8)),
            (
                f"Tensor.reshape r{number}3 1 1 {at[3]} {at[4]} shape=(1,2,2,2,2,8) "
                f"$input={at[3]} {parts.format(at[4])}"
            ),
            (
                f"Tensor.permute r{number}4 1 1 {at[4]} {at[5]} {turned} $input={at[4]} "
                f"{parts.format(at[5])}"
            ),
            (
                f"Tensor.reshape r{number}5 1 1 {at[5]} {result} shape=(1,4,4,8) "
                f"$input={at[5]} #{result}=(1,4,4,8)f32"
            ),
        ]

    def roll(name, source, result, shift):
        return (
            f"torch.roll {name} 1 1 {source} {result} shifts=({shift},{shift}) dims=(1,2) "
            f"$input={source} #{result}=(1,4,4,8)f32"
        )

    return [
        "pnnx.Input in 0 1 image #image=(1,3,12,12)f32",
        (
            "nn.Conv2d patches 1 1 image m kernel_size=(3,3) stride=(3,3) padding=(0,0) "
            "groups=1 @weight=(8,3,3,3)f32 #m=(1,8,4,4)f32"
        ),
        "Tensor.permute p 1 1 m x dims=(0,2,3,1) $input=m #x=(1,4,4,8)f32",
        *block(0, "x", "y"),
        roll("there", "y", "z", -1),
        *block(1, "z", "u"),
        roll("back", "u", "v", 1),
        "pnnx.Output out 1 0 v",
    ]


def window_weights():
    """Weights of these blocks."""
    rng = np.random.default_rng(9)
    return {
        "patches.weight": rng.standard_normal((8, 3, 3, 3)).astype(np.float32),
        **module_weights(name="block0", seed=1),
        **module_weights(name="block1", seed=2),
    }


def window_rollout_by_hand(weights):
    """Rollout over the cells of these blocks, shape (16, 16).

    Parameters
    ----------
    weights : list of ndarray of shape (4, 4, 4)
        Of both blocks: means of the heads, by window, query and key.
    """
    flow = np.eye(16)
    for shift, of_block in enumerate(weights):
        mixed = np.zeros((16, 16))
        for window in range(4):
            cells = [
                (2 * (window // 2) + token // 2 + shift) % 4 * 4
                + (2 * (window % 2) + token % 2 + shift) % 4
                for token in range(4)
            ]
            for query in range(4):
                for key in range(4):
                    mixed[cells[query], cells[key]] = of_block[window, query, key]
        flow = (mixed + np.eye(16)) / 2 @ flow
    return flow
