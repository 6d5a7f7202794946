"""Branches that are connected with each other's readers, and what only moves elements."""

from __future__ import annotations

import numpy as np
import pytest

from array_reference import compare, reference_of

SIZE = "(1,20,16)f32"


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def first_reasons(comparison):
    return [(o.operator.name, [r.kind for r in o.reasons][:1]) for o in comparison.origins]


def linear(name, made):
    return (
        f"nn.Linear {name} 1 1 0 {made} bias=False in_features=16 out_features=16 "
        f"@weight=(16,16)f32 #{made}={SIZE}"
    )


def test_queries_and_values_are_exchanged(make_pair):
    """The reference shows neither scores nor weights: each reader alone explains nothing."""
    x = normal(0, 1, 20, 16)
    weights = {name: normal(place, 16, 16) / 2 for place, name in enumerate("qkv", 1)}
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("q", "q"), linear("k", "k"), linear("v", "v"),
        "torch.transpose turn 1 1 k 4 dim0=1 dim1=2 $input=k #4=(1,16,20)f32",
        "torch.matmul scores 2 1 v 4 5 $input=v $other=4 #5=(1,20,20)f32",
        "F.softmax shares 1 1 5 6 dim=-1 $input=5 #6=(1,20,20)f32",
        f"torch.matmul mixed 2 1 6 q 7 $input=6 $other=q #7={SIZE}", "pnnx.Output out 1 0 7",
        weights={f"{name}.weight": weight for name, weight in weights.items()},
    )  # fmt: skip
    q, k, v = (x @ weights[name].T for name in "qkv")
    arrays = {"in": x, "q": q, "k": k, "v": v, "mixed": softmax(q @ k.swapaxes(1, 2)) @ v}
    calls = (
        *(("mm", ("in",), name, {f"{name}.weight": weights[name]}) for name in "qkv"),
        ("attention", ("q", "k", "v"), "mixed", {}),
    )
    comparison = compare(path, reference_of(arrays, calls), x)
    assert first_reasons(comparison) == [("scores", ["expression"])]
    text = comparison.origins[0].reasons[0].text
    assert text.startswith("The reference has 'q' and 'v' exchanged")


def test_keys_and_values_are_exchanged_before_what_turns_keys(make_pair):
    """What is computed from the wrong branch is matched with a copy of the right one."""
    x = normal(0, 1, 20, 16)
    weights = {name: normal(place, 16, 16) / 2 for place, name in enumerate("qkv", 1)}
    size = "(1,1,20,16)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("q", "q"), linear("k", "k"), linear("v", "v"),
        f"pnnx.Expression turn 1 1 v 4 expr=add(mul(@0,0.6),sin(@0)) #4={SIZE}",
        f"torch.unsqueeze row 1 1 4 5 dim=0 $input=4 #5={size}",
        "Tensor.expand copies 1 1 5 6 sizes=(2,1,20,16) $input=5 #6=(2,1,20,16)f32",
        f"torch.unsqueeze row2 1 1 k 7 dim=0 $input=k #7={size}",
        "Tensor.expand copies2 1 1 7 8 sizes=(2,1,20,16) $input=7 #8=(2,1,20,16)f32",
        f"torch.unsqueeze row3 1 1 q 9 dim=0 $input=q #9={size}",
        "F.scaled_dot_product_attention mixed 3 1 9 6 8 10 attn_mask=None dropout_p=0.0 "
        "is_causal=False $query=9 $key=6 $value=8 #10=(2,1,20,16)f32",
        "pnnx.Output out 1 0 10",
        weights={f"{name}.weight": weight for name, weight in weights.items()},
    )  # fmt: skip
    q, k, v = (x @ weights[name].T for name in "qkv")
    turned = np.float32(0.6) * k + np.sin(k)
    mixed = softmax(q @ turned.swapaxes(1, 2) / 4) @ v
    arrays = {"in": x, "q": q, "k": k, "v": v, "values": np.stack([v, v]),
              "mixed": np.stack([mixed, mixed])}  # fmt: skip
    calls = (
        *(("mm", ("in",), name, {f"{name}.weight": weights[name]}) for name in "qkv"),
        ("expand", ("v",), "values", {}),
        ("attention", ("q", "k", "values"), "mixed", {}),
    )
    comparison = compare(path, reference_of(arrays, calls), x)
    (origin,) = comparison.origins
    assert origin.reasons[0].kind == "expression"
    assert "'k' and 'v' exchanged" in origin.reasons[0].text


def test_keys_and_values_are_exchanged_before_what_copies_them(make_pair):
    """Copies of the other branch are not taken for a confirmation."""
    x, one, two = normal(0, 1, 20, 16), normal(1, 16, 16) / 2, normal(2, 16, 16) / 2
    size, copied = "(1,20,1,16)f32", "(1,20,3,16)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("one", "1"), linear("two", "2"),
        f"torch.unsqueeze row 1 1 1 3 dim=2 $input=1 #3={size}",
        f"torch.unsqueeze row2 1 1 2 4 dim=2 $input=2 #4={size}",
        f"Tensor.expand copies 1 1 4 5 sizes=(1,20,3,16) $input=4 #5={copied}",
        f"Tensor.expand copies2 1 1 3 6 sizes=(1,20,3,16) $input=3 #6={copied}",
        f"F.tanh act 1 1 5 7 $input=5 #7={copied}",
        f"pnnx.Expression end 2 1 7 6 8 expr=add(@0,exp(@1)) #8={copied}",
        "pnnx.Output out 1 0 8",
        weights={"one.weight": one, "two.weight": two},
    )  # fmt: skip
    a, b = x @ one.T, x @ two.T
    first, second = (np.repeat(each[:, :, None], 3, 2) for each in (a, b))
    arrays = {"in": x, "one": a, "two": b, "first": first, "second": second,
              "tanh": np.tanh(first), "exp": np.exp(second),
              "add": np.tanh(first) + np.exp(second)}  # fmt: skip
    calls = (
        ("mm", ("in",), "one", {"one.weight": one}),
        ("mm", ("in",), "two", {"two.weight": two}),
        ("expand", ("one",), "first", {}), ("expand", ("two",), "second", {}),
        ("tanh", ("first",), "tanh", {}), ("exp", ("second",), "exp", {}),
        ("add", ("tanh", "exp"), "add", {}),
    )  # fmt: skip
    found = compare(path, reference_of(arrays, calls), x)
    assert all(kinds == ["expression"] for _, kinds in first_reasons(found)), found.origins
    texts = [origin.reasons[0].text for origin in found.origins]
    assert [("'one'" in text or "copies" in text) for text in texts] == [True] * len(texts)
    assert 1 <= len(texts) <= 2


def test_a_part_confirms_nothing_of_the_whole(make_pair):
    """What is joined is wrong in one row only, which the reader of all others does not show."""
    x, token, weight = normal(0, 1, 20, 16), normal(1, 1, 1, 16), normal(2, 16, 16) / 4
    joined = "(1,21,16)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}",
        "pnnx.Attribute token 0 1 1 @data=(1,1,16)f32 #1=(1,1,16)f32",
        f"torch.cat join 2 1 1 0 2 dim=1 #2={joined}",
        f"nn.LayerNorm norm 1 1 2 3 elementwise_affine=False eps=1e-5 normalized_shape=(16) "
        f"#3={joined}",
        f"Tensor.slice rest 1 1 3 4 dim=1 start=1 end=21 step=1 $input=3 #4={SIZE}",
        "Tensor.select first 1 1 3 5 dim=1 index=0 $input=3 #5=(1,16)f32",
        "nn.Linear head 1 1 5 6 bias=False in_features=16 out_features=16 @weight=(16,16)f32 "
        "#6=(1,16)f32",
        "pnnx.Output out 2 0 4 6",
        weights={"token.data": np.roll(token, 1, -1), "head.weight": weight},
    )  # fmt: skip
    whole = np.concatenate([token, x], 1)
    normed = whole - whole.mean(-1, keepdims=True)
    normed /= np.sqrt(np.square(normed).mean(-1, keepdims=True) + 1e-5)
    arrays = {"in": x, "token": token, "cat": whole, "norm": normed, "slice": normed[:, 1:],
              "select": normed[:, 0], "mm": normed[:, 0] @ weight.T}  # fmt: skip
    calls = (
        ("cat", ("token", "in"), "cat", {}), ("norm", ("cat",), "norm", {}),
        ("slice", ("norm",), "slice", {}), ("select", ("norm",), "select", {}),
        ("mm", ("select",), "mm", {"head.weight": weight}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x)
    (origin,) = comparison.origins
    assert origin.operator.name in {"token", "join"}


def test_a_reshape_gives_no_permuted_tensor(make_pair):
    """With sizes in the other order, what follows agrees on the tensor that is turned."""
    x = normal(0, 1, 20, 16)
    turned, split = "(1,4,20,4)f32", "(1,20,4,4)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}",
        f"pnnx.Expression two 1 1 0 1 expr=mul(@0,2.0) #1={SIZE}",
        f"Tensor.reshape split 1 1 1 2 shape=(1,4,20,4) $input=1 #2={split}",
        f"torch.transpose turn 1 1 2 3 dim0=1 dim1=2 $input=2 #3={turned}",
        f"F.softmax soft 1 1 3 4 dim=-1 $input=3 #4={turned}", "pnnx.Output out 1 0 4",
    )  # fmt: skip
    doubled = 2 * x
    moved = doubled.reshape(1, 20, 4, 4).swapaxes(1, 2)
    arrays = {"in": x, "mul": doubled, "transpose": moved, "softmax": softmax(moved)}
    calls = (
        ("mul", ("in",), "mul", {}), ("transpose", ("mul",), "transpose", {}),
        ("softmax", ("transpose",), "softmax", {}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x)
    assert first_reasons(comparison) == [("split", ["parameter"])]
    assert "Set shape=(1, 20, 4, 4)" in comparison.origins[0].reasons[0].text


@pytest.mark.parametrize("known", ["hashes", "hashes of a product", "no hashes"])
def test_a_wrong_weight_is_no_bias_where_hashes_tell(make_pair, known):
    """Of an input that hardly varies in one place, a wrong weight adds a constant."""
    x, weight, bias = normal(0, 1, 20, 16), normal(1, 16, 16) / 4, np.ones(16, np.float32)
    x[..., 3] = 1 + 1e-4 * x[..., 3]
    wrong = weight.copy()
    wrong[5, 3] += 2
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}",
        f"nn.Linear fc 1 1 0 1 bias=True in_features=16 out_features=16 @bias=(16)f32 "
        f"@weight=(16,16)f32 #1={SIZE}",
        f"F.relu act 1 1 1 2 $input=1 #2={SIZE}", "pnnx.Output out 1 0 2",
        weights={"fc.weight": wrong, "fc.bias": bias},
    )  # fmt: skip
    made = x @ weight.T
    arrays = {"in": x, "mm": made, "add": made + bias, "relu": np.maximum(made + bias, 0)}
    calls = {
        "hashes": [("addmm", ("in",), "add", {"fc.weight": weight, "fc.bias": bias})],
        "hashes of a product": [
            ("MatMul", ("in",), "mm", {"onnx::1": weight.T, "onnx::1 transposed": weight}),
            ("Add", ("mm",), "add", {"onnx::2": bias}),
        ],
        "no hashes": [("addmm", ("in",), "add", {})],
    }[known]
    comparison = compare(
        path, reference_of(arrays, (*calls, ("relu", ("add",), "relu", {}))), x
    )
    kind = "bias" if known == "no hashes" else "weight_values"
    assert first_reasons(comparison) == [("fc", [kind])]


def test_a_sigmoid_instead_of_a_silu_whose_steps_are_shown(make_pair):
    """Ours agrees with the sigmoid in the SiLU; only what reads it does not."""
    x, other = normal(0, 1, 20, 16), normal(1, 1, 20, 16)
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", f"pnnx.Input up 0 1 1 #1={SIZE}",
        f"F.sigmoid act 1 1 0 2 $input=0 #2={SIZE}",
        f"pnnx.Expression gated 2 1 2 1 3 expr=mul(@0,@1) #3={SIZE}", "pnnx.Output out 1 0 3",
    )  # fmt: skip
    sigmoid = 1 / (1 + np.exp(-x))
    arrays = {"in": x, "up": other, "sigmoid": sigmoid, "silu": x * sigmoid,
              "mul": x * sigmoid * other}  # fmt: skip
    calls = (
        ("sigmoid", ("in",), "sigmoid", {}), ("mul", ("in", "sigmoid"), "silu", {}),
        ("mul", ("silu", "up"), "mul", {}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x, other)
    assert first_reasons(comparison) == [("act", ["activation_missing"])]
    assert "silu instead of F.sigmoid" in comparison.origins[0].reasons[0].text


def test_an_axis_that_is_kept_before_what_needs_its_rank(make_pair):
    """Our file states the rank of the reference, so this is no lost batch."""
    x = normal(0, 1, 8, 4, 6)
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,8,4,6)f32",
        "torch.sum sum 1 1 0 1 dim=(1) keepdim=True $input=0 #1=(1,4,6)f32",
        "Tensor.permute turn 1 1 1 2 dims=(0,2,1) $input=1 #2=(1,6,4)f32",
        "F.relu act 1 1 2 3 $input=2 #3=(1,6,4)f32", "pnnx.Output out 1 0 3",
    )  # fmt: skip
    summed = x.sum(1)
    turned = summed.swapaxes(1, 2)
    arrays = {"in": x, "sum": summed, "permute": turned, "relu": np.maximum(turned, 0)}
    calls = (
        ("sum", ("in",), "sum", {}), ("permute", ("sum",), "permute", {}),
        ("relu", ("permute",), "relu", {}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x)
    assert first_reasons(comparison) == [("sum", ["parameter"])]
    assert "Set keepdim=False" in comparison.origins[0].reasons[0].text


def test_a_wrong_shape_is_the_only_origin_of_what_fails_behind_it(make_pair):
    """The layer behind it has the same tensor, only in the right shape."""
    x, weight = normal(0, 3, 15, 8), normal(1, 8, 8) / 3
    size, heads, turned = "(3,15,8)f32", "(3,15,4,2)f32", "(3,4,15,2)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"Tensor.reshape split 1 1 0 1 shape=(3,15,4,2) $input=0 #1={heads}",
        f"torch.transpose turn 1 1 1 2 dim0=1 dim1=2 $input=1 #2={turned}",
        f"pnnx.Expression two 1 1 2 3 expr=mul(@0,2.0) #3={turned}",
        f"torch.transpose back 1 1 3 4 dim0=1 dim1=2 $input=3 #4={heads}",
        f"Tensor.reshape join 1 1 4 5 shape=(15,3,8) $input=4 #5={size}",
        f"nn.Linear fc 1 1 5 6 bias=False in_features=8 out_features=8 @weight=(8,8)f32 "
        f"#6={size}",
        f"pnnx.Expression sum 2 1 0 6 7 expr=add(@0,@1) #7={size}",
        f"F.tanh act 1 1 7 8 $input=7 #8={size}", "pnnx.Output out 1 0 8",
        weights={"fc.weight": weight},
    )  # fmt: skip
    split = x.reshape(3, 15, 4, 2)
    product = 2 * x @ weight.T
    arrays = {"in": x, "turn": split.swapaxes(1, 2), "mul": 2 * split.swapaxes(1, 2),
              "back": 2 * split, "mm": product.reshape(45, 8), "add": x + product,
              "tanh": np.tanh(x + product)}  # fmt: skip
    calls = (
        ("transpose", ("in",), "turn", {}), ("mul", ("turn",), "mul", {}),
        ("transpose", ("mul",), "back", {}), ("mm", ("back",), "mm", {"fc.weight": weight}),
        ("add", ("in", "mm"), "add", {}), ("tanh", ("add",), "tanh", {}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x)
    assert first_reasons(comparison) == [("join", ["parameter"])]


def test_a_lost_grid_that_the_reference_computes_in_integers(make_pair):
    x, grid = normal(0, 1, 20, 16), np.arange(320).reshape(20, 16)
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}",
        "pnnx.Attribute grid 0 1 1 @data=(20,16)f32 #1=(20,16)f32",
        f"pnnx.Expression less 2 1 0 1 2 expr=sub(@0,@1) #2={SIZE}",
        f"nn.Identity more 1 1 0 3 #3={SIZE}",
        "torch.cat join 2 1 2 3 4 dim=1 #4=(1,40,16)f32", "pnnx.Output out 1 0 4",
        weights={"grid.data": grid.astype(np.float32)},
    )  # fmt: skip
    less, more = (x - grid).astype(np.float32), (x + grid).astype(np.float32)
    arrays = {"in": x, "range": grid, "sub": less, "add": more,
              "cat": np.concatenate([less, more], 1)}  # fmt: skip
    calls = (
        ("arange", (), "range", {}), ("sub", ("in", "range"), "sub", {}),
        ("add", ("in", "range"), "add", {}), ("cat", ("sub", "add"), "cat", {}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x)
    assert first_reasons(comparison) == [("more", ["expression"])]
    assert "adds the result of 'grid'" in comparison.origins[0].reasons[0].text


@pytest.mark.parametrize("kind", ["Tensor.reshape", "ncnn.Reshape"])
def test_a_reshape_to_another_rank_before_what_fails(make_pair, tmp_path, kind):
    """Where the reference has no reshape at all, ours repeats its own input."""
    x = normal(0, 12, 24)
    if kind == "ncnn.Reshape":
        lines = (
            "7767517", "4 4", "Input in0 0 1 in0", "UnaryOp exp 1 1 in0 1 0=7",
            'Reshape shape 1 1 1 2 6="0w,1,0h"', "LSTM last 1 1 2 out0 0=4 1=384 2=0",
        )  # fmt: skip
        path = tmp_path / "m.ncnn.param"
        path.write_text("\n".join(lines) + "\n")
        rng = np.random.default_rng(1)
        parts = [rng.standard_normal(n).astype("f") / 4 for n in (384, 16, 64)]
        tag = np.uint32(0).tobytes()
        path.with_suffix(".bin").write_bytes(b"".join(tag + part.tobytes() for part in parts))
        last = lstm(np.exp(x), *parts)
    else:
        path = make_pair(
            "pnnx.Input in 0 1 0 #0=(12,24)f32", "torch.exp exp 1 1 0 1 $input=0 #1=(12,24)f32",
            "Tensor.reshape shape 1 1 1 2 shape=(12,1,24) $input=1 #2=(12,24)f32",
            "Tensor.permute turn 1 1 2 3 dims=(1,0) $input=2 #3=(24,12)f32",
            "F.softmax last 1 1 3 4 dim=1 $input=3 #4=(24,12)f32", "pnnx.Output out 1 0 4",
        )  # fmt: skip
        last = softmax(np.exp(x).T)
    arrays = {"in": x, "exp": np.exp(x), "last": last}
    calls = (("exp", ("in",), "exp", {}), ("last", ("exp",), "last", {}))
    comparison = compare(path, reference_of(arrays, calls), x)
    assert first_reasons(comparison) == [("shape", ["parameter"])]
    text = comparison.origins[0].reasons[0].text
    wanted = "w=24, h=12 in place of shape_expr" if kind[0] == "n" else "shape=(12, 24)"
    assert f"Set {wanted}" in text


def lstm(rows, weight, bias, state_weight):
    """An LSTM of 4 units in one direction, whose gates are i, f, o and g as in ncnn."""
    h = c = np.zeros(4)
    made = []
    for row in rows:
        gates = weight.reshape(16, 24) @ row + bias + state_weight.reshape(16, 4) @ h
        i, f, o = (1 / (1 + np.exp(-gates[n * 4 : n * 4 + 4])) for n in range(3))
        c = f * c + i * np.tanh(gates[12:])
        h = o * np.tanh(c)
        made.append(h)
    return np.float32(made)


def test_a_layer_does_not_change_the_rank_of_what_follows(make_pair):
    """The product of the reference lacks an axis of size 1, where the axis would be right."""
    x, weight = normal(0, 12, 1, 16), normal(1, 24, 16) / 4
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(12,1,16)f32",
        "nn.Linear fc 1 1 0 1 bias=False in_features=16 out_features=24 @weight=(24,16)f32 "
        "#1=(12,1,24)f32",
        "F.softmax soft 1 1 1 2 dim=1 $input=1 #2=(12,1,24)f32", "pnnx.Output out 1 0 2",
        weights={"fc.weight": weight},
    )  # fmt: skip
    product = x @ weight.T
    arrays = {"in": x, "mm": product[:, 0], "softmax": softmax(product)}
    calls = (("mm", ("in",), "mm", {"w": weight}), ("softmax", ("mm",), "softmax", {}))
    assert first_reasons(compare(path, reference_of(arrays, calls), x)) == [("soft", ["axis"])]
