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
