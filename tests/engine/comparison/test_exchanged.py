"""Layers, operands and results that a converter has exchanged."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from array_reference import compare, reference_of
from engine.comparison.references import Reference, ReferenceOperator, ReferenceTensor

SIZE = "(1,20,16)f32"


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def names(comparison):
    return [origin.operator.name for origin in comparison.origins]


def linear(name, source, made):
    return (
        f"nn.Linear {name} 1 1 {source} {made} bias=False in_features=16 out_features=16 "
        f"@weight=(16,16)f32 #{made}={SIZE}"
    )


@pytest.mark.parametrize("named", [True, False], ids=["hashes", "no hashes"])
def test_weights_of_two_layers_are_exchanged(make_pair, named):
    """Their hashes, and what they give of the other's input, name the wrong calls."""
    x, one, two = normal(0, 1, 20, 16), normal(1, 16, 16) / 4, normal(2, 16, 16) / 4
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("one", 0, 1),
        f"F.tanh act 1 1 1 2 $input=1 #2={SIZE}",
        f"pnnx.Expression sum 2 1 2 0 3 expr=add(@0,@1) #3={SIZE}", linear("two", 3, 4),
        f"F.relu act2 1 1 4 5 $input=4 #5={SIZE}",
        f"pnnx.Expression more 1 1 5 6 expr=mul(@0,2.0) #6={SIZE}", "pnnx.Output out 1 0 6",
        weights={"one.weight": two, "two.weight": one},
    )  # fmt: skip
    a = x @ one.T
    b = np.tanh(a) + x
    c = b @ two.T
    d = np.maximum(c, 0)
    arrays = {"in": x, "mm": a, "tanh": np.tanh(a), "add": b, "mm2": c, "relu": d, "mul": 2 * d}
    first, second = ({"w.weight": one}, {"v.weight": two}) if named else ({}, {})
    calls = (
        ("mm", ("in",), "mm", first), ("tanh", ("mm",), "tanh", {}),
        ("add", ("tanh", "in"), "add", {}), ("mm", ("add",), "mm2", second),
        ("relu", ("mm2",), "relu", {}), ("mul", ("relu",), "mul", {}),
    )  # fmt: skip
    assert names(compare(path, reference_of(arrays, calls), x)) == ["one", "two"]


def test_weights_of_layers_with_the_same_input_are_exchanged(make_pair):
    """Each gives the other's tensor exactly; names of the weights tell them apart."""
    x, one, two = normal(0, 1, 20, 16), normal(1, 16, 16) / 4, normal(2, 16, 16) / 4
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("gate", 0, 1), linear("value", 0, 2),
        f"F.tanh act 1 1 1 3 $input=1 #3={SIZE}",
        f"pnnx.Expression both 2 1 3 2 4 expr=mul(@0,@1) #4={SIZE}", "pnnx.Output out 1 0 4",
        weights={"gate.weight": two, "value.weight": one},
    )  # fmt: skip
    a, b = x @ one.T, x @ two.T
    arrays = {"in": x, "mm": a, "mm2": b, "tanh": np.tanh(a), "mul": np.tanh(a) * b}
    calls = (
        ("mm", ("in",), "mm", {"gate.weight": one}),
        ("mm", ("in",), "mm2", {"value.weight": two}),
        ("tanh", ("mm",), "tanh", {}), ("mul", ("tanh", "mm2"), "mul", {}),
    )  # fmt: skip
    assert names(compare(path, reference_of(arrays, calls), x)) == ["gate", "value"]


BRANCH = (
    f"pnnx.Input in 0 1 0 #0={SIZE}", f"F.tanh left 1 1 0 1 $input=0 #1={SIZE}",
    f"pnnx.Expression right 1 1 0 2 expr=mul(@0,0.3) #2={SIZE}",
)  # fmt: skip


def first_reason(comparison):
    (origin,) = comparison.origins
    return origin.operator.name, origin.reasons[0].kind, origin.reasons[0].text


def test_a_lost_operand_of_a_sum_is_named(make_pair):
    x = normal(3, 1, 20, 16)
    path = make_pair(
        *BRANCH, f"nn.Identity sum 1 1 1 3 #3={SIZE}",
        f"pnnx.Expression end 2 1 3 2 4 expr=div(@0,add(abs(@1),1.0)) #4={SIZE}",
        "pnnx.Output out 1 0 4",
    )  # fmt: skip
    a, b = np.tanh(x), np.float32(0.3) * x
    arrays = {"in": x, "tanh": a, "mul": b, "add": a + b, "div": (a + b) / (np.abs(b) + 1)}
    calls = (
        ("tanh", ("in",), "tanh", {}), ("mul", ("in",), "mul", {}),
        ("add", ("tanh", "mul"), "add", {}), ("div", ("add", "mul"), "div", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x))
    assert (name, kind) == ("sum", "expression")
    assert "adds the result of 'right'" in text


def test_an_operator_that_reads_another_tensor(make_pair):
    x, weight = normal(4, 1, 20, 16), normal(5, 16, 16)
    path = make_pair(
        *BRANCH, linear("fc", 1, 3),
        f"pnnx.Expression end 3 1 3 2 1 4 expr=add(@0,mul(@1,@2)) #4={SIZE}",
        "pnnx.Output out 1 0 4", weights={"fc.weight": weight},
    )  # fmt: skip
    a, b = np.tanh(x), np.float32(0.3) * x
    y = b @ weight.T
    arrays = {"in": x, "tanh": a, "mul": b, "fc": y, "end": y + a * b}
    calls = (
        ("tanh", ("in",), "tanh", {}), ("mul", ("in",), "mul", {}),
        ("mm", ("mul",), "fc", {}), ("addcmul", ("fc", "tanh", "mul"), "end", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x))
    assert (name, kind) == ("fc", "expression")
    assert "reads 'right' here, the file 'left'" in text


def test_queries_and_keys_are_exchanged(make_pair):
    x = normal(6, 1, 20, 16)
    path = make_pair(
        *BRANCH,
        "F.scaled_dot_product_attention mix 3 1 2 1 0 3 attn_mask=None dropout_p=0.0 "
        f"is_causal=False $query=2 $key=1 $value=0 #3={SIZE}",
        f"pnnx.Expression end 1 1 3 4 expr=mul(@0,2.0) #4={SIZE}", "pnnx.Output out 1 0 4",
    )  # fmt: skip
    a, b = np.tanh(x), np.float32(0.3) * x
    scores = np.exp((a @ b.swapaxes(1, 2)).astype(np.float64) / 4)
    y = ((scores / scores.sum(-1, keepdims=True)) @ x).astype(np.float32)
    arrays = {"in": x, "tanh": a, "mul": b, "mix": y, "end": 2 * y}
    calls = (
        ("tanh", ("in",), "tanh", {}), ("mul", ("in",), "mul", {}),
        ("sdpa", ("tanh", "mul", "in"), "mix", {}), ("mul", ("mix",), "end", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x))
    assert (name, kind) == ("mix", "expression")
    assert "inputs 0 and 1 exchanged" in text


def test_the_weights_of_another_layer_are_named(make_pair):
    """Fewer rows than weights: the tensors alone do not tell them."""
    x, one, two = normal(7, 1, 4, 16), normal(8, 16, 16) / 4, normal(9, 16, 16) / 4
    size = "(1,4,16)f32"
    path = make_pair(
        *(
            line.replace(SIZE, size)
            for line in (
                f"pnnx.Input in 0 1 0 #0={SIZE}", linear("one", 0, 1),
                f"F.tanh act 1 1 1 2 $input=1 #2={SIZE}", linear("two", 2, 3),
                f"F.tanh act2 1 1 3 4 $input=3 #4={SIZE}", "pnnx.Output out 1 0 4",
            )
        ),
        weights={"one.weight": two, "two.weight": one},
    )  # fmt: skip
    a = x @ one.T
    b = np.tanh(a) @ two.T
    arrays = {"in": x, "mm": a, "tanh": np.tanh(a), "mm2": b, "tanh2": np.tanh(b)}
    calls = (
        ("mm", ("in",), "mm", {}), ("tanh", ("mm",), "tanh", {}),
        ("mm", ("tanh",), "mm2", {}), ("tanh", ("mm2",), "tanh2", {}),
    )  # fmt: skip
    first, second = compare(path, reference_of(arrays, calls), x).origins
    assert (first.operator.name, second.operator.name) == ("one", "two")
    for origin, other in ((first, "two"), (second, "one")):
        assert origin.reasons[0].kind == "weight_values"
        assert f"weight of '{other}'" in origin.reasons[0].text


@pytest.mark.parametrize("fill", [-1e4, float(np.finfo(np.float32).min)])
def test_queries_and_keys_before_a_mask_are_exchanged(make_pair, fill):
    """The product is the reference's, transposed; the mask hides how small the rest is."""
    x = normal(8, 1, 6, 16)
    size, scores = "(1,6,16)f32", "(1,6,6)f32"
    mask = np.tril(np.ones((1, 6, 6), bool))
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"F.tanh keys 1 1 0 1 $input=0 #1={size}",
        f"F.relu queries 1 1 0 2 $input=0 #2={size}",
        "torch.transpose turn 1 1 2 3 dim0=1 dim1=2 $input=2 #3=(1,16,6)f32",
        f"torch.matmul product 2 1 1 3 4 $input=1 $other=3 #4={scores}",
        "pnnx.Attribute mask 0 1 5 @data=(1,6,6)bool #5=(1,6,6)bool",
        "pnnx.Attribute fill 0 1 6 @data=(1)f32 #6=(1)f32",
        f"torch.where masked 3 1 5 4 6 7 $condition=5 $input=4 $other=6 #7={scores}",
        f"F.softmax soft 1 1 7 8 dim=-1 $input=7 #8={scores}", "pnnx.Output out 1 0 8",
        weights={"mask.data": mask, "fill.data": np.float32([fill])},
    )  # fmt: skip
    keys, queries = np.tanh(x), np.maximum(x, 0)
    product = queries @ keys.swapaxes(1, 2)
    masked = np.where(mask, product, np.float32(fill))
    powers = np.exp((masked - masked.max(-1, keepdims=True)).astype(np.float64))
    soft = (powers / powers.sum(-1, keepdims=True)).astype(np.float32)
    arrays = {"in": x, "keys": keys, "queries": queries, "product": product, "masked": masked,
              "soft": soft}  # fmt: skip
    calls = (
        ("tanh", ("in",), "keys", {}), ("relu", ("in",), "queries", {}),
        ("bmm", ("queries", "keys"), "product", {}), ("where", ("product",), "masked", {}),
        ("_softmax", ("masked",), "soft", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x))
    assert (name, kind) == ("product", "expression")
    assert "queries were taken for keys" in text


def test_weights_of_layers_in_a_row_that_the_reference_computes_in_two_calls(make_pair):
    """The second layer gives the first one's result of the first one's input."""
    x = normal(9, 1, 20, 16)
    one, two, shift, other = (
        normal(n, *size) / 4
        for n, size in ((10, (16, 16)), (11, (16, 16)), (12, (16,)), (13, (16,)))
    )
    biased = [
        linear(name, *ends).replace("bias=False", "bias=True").replace("@w", "@bias=(16)f32 @w")
        for name, *ends in (("one", 1, 2), ("two", 3, 4))
    ]
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", f"F.relu first 1 1 0 1 $input=0 #1={SIZE}",
        biased[0], f"F.relu act 1 1 2 3 $input=2 #3={SIZE}", biased[1],
        f"pnnx.Expression sum 2 1 4 1 5 expr=add(@0,@1) #5={SIZE}",
        f"F.tanh end 1 1 5 6 $input=5 #6={SIZE}", "pnnx.Output out 1 0 6",
        weights={"one.weight": two, "two.weight": one, "one.bias": other, "two.bias": shift},
    )  # fmt: skip
    first = np.maximum(x, 0)
    a = first @ one.T
    c = np.maximum(a + shift, 0)
    d = c @ two.T
    e = d + other
    arrays = {"in": x, "first": first, "mm": a, "one": a + shift, "act": c, "mm2": d, "two": e,
              "sum": e + first, "end": np.tanh(e + first)}  # fmt: skip
    calls = (
        ("relu", ("in",), "first", {}), ("mm", ("first",), "mm", {}),
        ("add", ("mm",), "one", {}), ("relu", ("one",), "act", {}),
        ("mm", ("act",), "mm2", {}), ("add", ("mm2",), "two", {}),
        ("add", ("two", "first"), "sum", {}), ("tanh", ("sum",), "end", {}),
    )  # fmt: skip
    found = compare(path, reference_of(arrays, calls), x)
    assert names(found) == ["one", "two"]
    assert {origin.reasons[0].kind for origin in found.origins} == {"weight_values"}


def test_a_lost_sum_before_a_relu_is_no_relu(make_pair):
    """What is left of it is not negative, and so like the ReLU's result."""
    x, weight = normal(12, 1, 20, 16), normal(13, 16, 16)
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", f"F.relu first 1 1 0 1 $input=0 #1={SIZE}",
        linear("fc", 1, 2), f"nn.Identity sum 1 1 1 3 #3={SIZE}",
        f"F.relu act 1 1 3 4 $input=3 #4={SIZE}",
        f"pnnx.Expression end 2 1 4 2 5 expr=mul(@0,@1) #5={SIZE}", "pnnx.Output out 1 0 5",
        weights={"fc.weight": weight / 8},
    )  # fmt: skip
    a = np.maximum(x, 0)
    b = a @ (weight / 8).T
    c = np.maximum(a + b, 0)
    arrays = {"in": x, "first": a, "fc": b, "sum": a + b, "act": c, "end": c * b}
    calls = (
        ("relu", ("in",), "first", {}), ("mm", ("first",), "fc", {}),
        ("add", ("first", "fc"), "sum", {}), ("relu", ("sum",), "act", {}),
        ("mul", ("act", "fc"), "end", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x))
    assert (name, kind) == ("sum", "expression")
    assert "adds the result of 'fc'" in text


def test_a_lost_sum_behind_what_only_moves_elements_is_named_alone(make_pair):
    x, weight = normal(0, 1, 20, 16), normal(1, 16, 16)
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("fc", 0, 1),
        "Tensor.reshape flat 1 1 1 2 shape=(20,16) $input=1 #2=(20,16)f32",
        f"Tensor.reshape back 1 1 2 3 shape=(1,20,16) $input=2 #3={SIZE}",
        f"nn.Identity sum 1 1 3 4 #4={SIZE}",
        f"F.tanh end 1 1 4 5 $input=4 #5={SIZE}", "pnnx.Output out 1 0 5",
        weights={"fc.weight": weight},
    )  # fmt: skip
    a = x @ weight.T
    arrays = {"in": x, "fc": a, "add": a + x, "end": np.tanh(a + x)}
    calls = (
        ("mm", ("in",), "fc", {"fc.weight": weight}),
        ("add", ("fc", "in"), "add", {}), ("tanh", ("add",), "end", {}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x)
    assert first_reason(comparison)[:2] == ("sum", "expression")
    assert comparison.origins[0].among == ()


def test_a_sum_is_lost_behind_a_norm_of_no_effect(make_pair):
    """What does nothing in the file is named, though the reference shows a result for it."""
    x, weight = normal(0, 1, 20, 16), normal(1, 16, 16)
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", f"F.relu first 1 1 0 1 $input=0 #1={SIZE}",
        linear("fc", 1, 2), f"nn.Identity sum 1 1 2 3 #3={SIZE}",
        f"F.relu act 1 1 3 4 $input=3 #4={SIZE}",
        f"F.tanh end 1 1 4 5 $input=4 #5={SIZE}", "pnnx.Output out 1 0 5",
        weights={"fc.weight": weight},
    )  # fmt: skip
    a = np.maximum(x, 0)
    b = a @ weight.T
    normed = b * np.float32(1 - 5e-6)  # by a variance of 1, and eps
    c = np.maximum(normed + a, 0)
    arrays = {"in": x, "first": a, "fc": b, "norm": normed, "act": c, "end": np.tanh(c)}
    calls = (
        ("relu", ("in",), "first", {}), ("mm", ("first",), "fc", {"fc.weight": weight}),
        ("native_batch_norm", ("fc",), "norm", {}), ("relu_", ("norm",), "act", {}),
        ("tanh", ("act",), "end", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x))
    assert (name, kind) == ("sum", "expression")
    assert "adds the result of 'first'" in text


@pytest.mark.parametrize("names", [("cos", "sin"), ("sin", "cos")])
def test_a_function_that_is_the_one_beside_it(make_pair, names):
    """Its result is the other's, and only what joins both differs."""
    x = normal(14, 1, 20, 8)
    half = "(1,20,8)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={half}",
        f"pnnx.Expression one 1 1 0 1 expr=sin(@0) #1={half}",
        f"pnnx.Expression two 1 1 0 2 expr=sin(@0) #2={half}",
        f"torch.cat both 2 1 1 2 3 dim=-1 #3={SIZE}", f"F.tanh end 1 1 3 4 $input=3 #4={SIZE}",
        "pnnx.Output out 1 0 4",
    )  # fmt: skip
    values = {"cos": np.cos(x), "sin": np.sin(x)}
    both = np.concatenate([values[name] for name in names], -1)
    arrays = {"in": x} | {name: values[name] for name in names}
    arrays |= {"both": both, "end": np.tanh(both)}
    calls = (
        *((name, ("in",), name, {}) for name in names),
        ("cat", names, "both", {}), ("tanh", ("both",), "end", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x))
    assert (name, kind) == (("one", "two")[names.index("cos")], "expression")
    assert "computes cos(@0)" in text


def compare_modules(path, arrays, x):
    """Compare with results of layers by their names, without anything between them."""
    tensors = [ReferenceTensor(key, lambda array=array: array) for key, array in arrays.items()]
    return compare(path, Reference("modules", tensors), x)


def chain(between):
    """Two layers; the file has `between` where the reference adds what they read."""
    return (
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("one", 0, 1),
        f"F.tanh act 1 1 1 2 $input=1 #2={SIZE}", linear("two", 2, 3),
        *([f"nn.Identity lost 1 1 3 4 #4={SIZE}"] if between else []),
        linear("three", 4 if between else 3, 5), "pnnx.Output out 1 0 5",
    )  # fmt: skip


@pytest.mark.parametrize("between", [True, False], ids=["identity", "nothing"])
@pytest.mark.parametrize("added", ["tanh", "unknown"])
def test_a_sum_between_the_layers_that_a_reference_shows_is_lost(make_pair, between, added):
    x, one, two, three = normal(0, 1, 20, 16), *(normal(n, 16, 16) / 4 for n in (1, 2, 3))
    path = make_pair(
        *chain(between),
        weights={"one.weight": one, "two.weight": two, "three.weight": three},
    )
    a = x @ one.T
    b = np.tanh(a) @ two.T
    other = np.tanh(a) if added == "tanh" else np.cos(x * x)
    comparison = compare_modules(path, {"one": a, "two": b, "three": (b + other) @ three.T}, x)
    (origin,) = comparison.origins
    if added == "tanh":
        assert origin.operator.name == ("lost" if between else "three")
        assert "'act'" in origin.reasons[0].text
        assert (origin.reasons[0].kind, origin.among) == ("expression", ())
    else:
        named = {origin.operator.name, *(each.name for each in origin.among)}
        assert named == ({"three", "lost"} if between else {"three"})


def halves(x):
    return x[..., :8], x[..., 8:]


def test_the_parts_of_a_chunk_are_exchanged(make_pair):
    """Half of the features turned, as for rotary positions: the chunk is named, no reader."""
    x, half = normal(0, 1, 20, 16), "(1,20,8)f32"
    one, two = halves(x)
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("first", 0, 1),
        f"torch.chunk parts 1 2 1 2 3 chunks=2 dim=2 $input=1 #2={half} #3={half}",
        f"pnnx.Expression minus 1 1 2 4 expr=neg(@0) #4={half}",
        f"torch.cat turn 2 1 4 3 5 dim=2 #5={SIZE}",
        f"pnnx.Expression sum 2 1 1 5 6 expr=add(@0,mul(@1,0.5)) #6={SIZE}",
        linear("last", 6, 7), "pnnx.Output out 1 0 7",
        weights={"first.weight": np.eye(16, dtype=np.float32),
                 "last.weight": np.eye(16, dtype=np.float32)},
    )  # fmt: skip
    turned = np.concatenate([-two, one], 2)
    arrays = {"in": x, "one": one, "two": two, "neg": -two, "cat": turned,
              "add": x + turned / 2, "mm": x + turned / 2}  # fmt: skip
    calls = (
        ("slice", ("in",), "one", {}), ("slice", ("in",), "two", {}),
        ("neg", ("two",), "neg", {}), ("cat", ("neg", "one"), "cat", {}),
        ("add", ("in", "cat"), "add", {}), ("mm", ("add",), "mm", {}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x)
    assert names(comparison) == ["parts"]
    assert (
        comparison.origins[0]
        .reasons[0]
        .text.startswith("The reference has outputs 0 and 1 exchanged.")
    )


def test_parts_that_one_operator_reads_exchanged(make_pair):
    """The reference shows the parts as ours: what reads them is named, not the split."""
    x, third = normal(0, 1, 20, 48), "(1,20,16)f32"
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,20,48)f32",
        "torch.chunk parts 1 3 0 1 2 3 chunks=3 dim=2 $input=0 "
        f"#1={third} #2={third} #3={third}",
        "F.scaled_dot_product_attention mix 3 1 2 1 3 4 attn_mask=None dropout_p=0.0 "
        f"is_causal=False $query=2 $key=1 $value=3 #4={third}",
        f"F.tanh end 1 1 4 5 $input=4 #5={third}", "pnnx.Output out 1 0 5",
    )  # fmt: skip
    q, k, v = (x[..., n : n + 16] for n in (0, 16, 32))
    scores = np.exp((q @ k.swapaxes(1, 2)).astype(np.float64) / 4)
    mixed = ((scores / scores.sum(-1, keepdims=True)) @ v).astype(np.float32)
    arrays = {"in": x, "q": q, "k": k, "v": v, "mix": mixed, "tanh": np.tanh(mixed)}
    calls = (
        *(("split", ("in",), name, {}) for name in "qkv"),
        ("sdpa", ("q", "k", "v"), "mix", {}), ("tanh", ("mix",), "tanh", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x))
    assert (name, kind) == ("mix", "expression")
    assert "inputs 0 and 1 exchanged" in text


def test_a_constant_of_several_readers_is_one_origin(make_pair):
    """What each reader needs is solved, though the constant is broadcast over the batch."""
    x, theirs = normal(0, 4, 20, 16), normal(1, 20, 16)
    size = "(4,20,16)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        "pnnx.Attribute table 0 1 1 @data=(20,16)f32 #1=(20,16)f32",
        f"pnnx.Expression one 2 1 0 1 2 expr=mul(@0,@1) #2={size}",
        f"F.tanh act 1 1 2 3 $input=2 #3={size}",
        f"pnnx.Expression two 2 1 3 1 4 expr=add(mul(@0,2.0),@1) #4={size}",
        f"F.sigmoid end 1 1 4 5 $input=4 #5={size}", "pnnx.Output out 1 0 5",
        weights={"table.data": np.roll(theirs, 1, 0)},
    )  # fmt: skip
    a = x * theirs
    b = np.tanh(a)
    c = 2 * b + theirs
    arrays = {"in": x, "mul": a, "tanh": b, "double": 2 * b, "add": c,
              "sigmoid": 1 / (1 + np.exp(-c))}  # fmt: skip
    calls = (
        ("mul", ("in",), "mul", {}), ("tanh", ("mul",), "tanh", {}),
        ("mul", ("tanh",), "double", {}), ("add", ("double",), "add", {}),
        ("sigmoid", ("add",), "sigmoid", {}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x)
    assert names(comparison) == ["table"]
    reason = comparison.origins[0].reasons[0]
    assert reason.kind == "weight_values"
    np.testing.assert_allclose(reason.changes[0].value, theirs, atol=2e-3)


@pytest.mark.parametrize("fill", [-1e4, np.finfo(np.float32).min], ids=["-10000", "least"])
def test_the_fill_of_a_mask_hides_no_scores(make_pair, fill):
    """Relative to it all scores are equal, also those of another tensor."""
    x, keys, mask = (
        normal(0, 1, 20, 16),
        normal(1, 1, 20, 16),
        np.triu(np.full((20, 20), fill, np.float32), 1),
    )
    scores = "(1,20,20)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", f"pnnx.Input other 0 1 k #k={SIZE}",
        "pnnx.Attribute mask 0 1 m @data=(20,20)f32 #m=(20,20)f32",
        f"pnnx.Expression query 1 1 0 1 expr=add(mul(@0,3.0),0.5) #1={SIZE}",
        "torch.transpose keys 1 1 k 2 dim0=1 dim1=2 $input=k #2=(1,16,20)f32",
        f"torch.matmul scores 2 1 1 2 3 $input=1 $other=2 #3={scores}",
        f"pnnx.Expression masked 2 1 3 m 4 expr=add(@0,@1) #4={scores}",
        f"F.softmax weights 1 1 4 5 dim=-1 $input=4 #5={scores}",
        f"torch.matmul mixed 2 1 5 0 6 $input=5 $other=0 #6={SIZE}", "pnnx.Output out 1 0 6",
        weights={"mask.data": mask},
    )  # fmt: skip
    double = 2 * x
    query = double + np.float32(0.5)
    turned = keys.swapaxes(1, 2)
    product = query @ turned
    with np.errstate(over="ignore"):
        masked = product + mask
    weights = np.exp(masked - masked.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    arrays = {"in": x, "keys": keys, "double": double, "query": query, "turned": turned,
              "product": product, "masked": masked, "softmax": weights,
              "mixed": weights @ x}  # fmt: skip
    calls = (
        ("mul", ("in",), "double", {}), ("add", ("double",), "query", {}),
        ("transpose", ("keys",), "turned", {}),
        ("matmul", ("query", "turned"), "product", {}), ("add", ("product",), "masked", {}),
        ("softmax", ("masked",), "softmax", {}), ("matmul", ("softmax", "in"), "mixed", {}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x, keys)
    assert names(comparison) == ["query"]


LINEAR = "bias=False in_features=6 out_features=6 @weight=(6,6)f32"
SCALED = "expr=add(@0,mul(@1,@2))"


def test_constants_are_exchanged_behind_what_only_moves_elements(make_pair):
    """The permuted tensor has the reference's elements, so no factor is missing there."""
    x, w, v = normal(0, 1, 6, 4, 4), normal(1, 6, 6) / 2, normal(2, 6, 6) / 2
    one, two = np.abs(normal(3, 6, 1, 1)) + 0.5, np.abs(normal(4, 6, 1, 1)) + 0.5
    size, moved = "(1,6,4,4)f32", "(1,4,4,6)f32"

    def block(name, source):
        wide, mixed, back, gain, made = range(source + 1, source + 6)
        return (
            f"Tensor.permute {name}_in 1 1 {source} {wide} dims=(0,2,3,1) #{wide}={moved}",
            f"nn.Linear {name} 1 1 {wide} {mixed} {LINEAR} #{mixed}={moved}",
            f"Tensor.permute {name}_out 1 1 {mixed} {back} dims=(0,3,1,2) #{back}={size}",
            f"pnnx.Attribute {name}_gain 0 1 {gain} @data=(6,1,1)f32 #{gain}=(6,1,1)f32",
            f"pnnx.Expression {name}_sum 3 1 {source} {gain} {back} {made} {SCALED}",
        )

    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}", *block("a", 0), *block("b", 5),
        f"F.relu act 1 1 10 11 $input=10 #11={size}",
        "pnnx.Output out 1 0 11",
        weights={"a.weight": w, "b.weight": v, "a_gain.data": two, "b_gain.data": one},
    )  # fmt: skip
    arrays, calls, source = {"in": x, "one": one, "two": two}, [], "in"
    for name, weight, gain in (("a", w, "one"), ("b", v, "two")):
        wide = arrays[source].transpose(0, 2, 3, 1)
        mixed = wide @ weight.T
        back = mixed.transpose(0, 3, 1, 2)
        scaled = arrays[gain] * back
        for kind, given, made, value, own in (
            ("Transpose", (source,), "wide", wide, {}),
            ("MatMul", (f"{name}wide",), "mixed", mixed, {"w": weight}),
            ("Transpose", (f"{name}mixed",), "back", back, {}),
            ("Mul", (gain, f"{name}back"), "scaled", scaled, {}),
            ("Add", (source, f"{name}scaled"), "sum", arrays[source] + scaled, {}),
        ):
            arrays[name + made] = value
            calls.append((kind, given, name + made, own))
        source = f"{name}sum"
    arrays["relu"] = np.maximum(arrays[source], 0)
    calls.append(("Relu", (source,), "relu", {}))
    found = compare(path, reference_of(arrays, calls), x)
    assert names(found) == ["a_sum", "b_sum"]
    assert [origin.reasons[0].kind for origin in found.origins] == ["expression"] * 2
    assert "reads 'b_gain' here, the file 'a_gain'" in found.origins[0].reasons[0].text


def test_a_transposed_weight_of_an_attention_that_is_computed_by_products(make_pair):
    """ONNX stores a product's weight the other way: as the wrong one of ours, by chance."""
    x, stacked, out = normal(0, 1, 20, 16), normal(1, 48, 16) / 2, normal(2, 16, 16) / 2
    zeros = np.zeros(48, np.float32)
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}",
        "nn.MultiheadAttention mix 1 1 0 1 add_bias_kv=False add_zero_attn=False "
        "batch_first=True bias=True embed_dim=16 kdim=16 num_heads=1 vdim=16 "
        "@in_proj_bias=(48)f32 @in_proj_weight=(48,16)f32 @out_proj.bias=(16)f32 "
        f"@out_proj.weight=(16,16)f32 #1={SIZE}",
        f"F.tanh act 1 1 1 2 $input=1 #2={SIZE}", "pnnx.Output out 1 0 2",
        weights={"mix.in_proj_weight": stacked, "mix.in_proj_bias": zeros,
                 "mix.out_proj.weight": np.ascontiguousarray(out.T),
                 "mix.out_proj.bias": zeros[:16]},
    )  # fmt: skip

    def product(weight):
        """The names that the recorder of ONNX Runtime gives a product's weight."""
        stored = np.ascontiguousarray(weight.T)
        return {"w": stored, "w transposed": weight}

    q, k, v = (x @ part.T for part in np.split(stacked, 3))
    powers = np.exp(q @ k.swapaxes(1, 2) / 4)
    weights = powers / powers.sum(-1, keepdims=True)
    made = weights @ v @ out.T
    arrays = {"in": x, "q": q, "k": k, "v": v, "scores": q @ k.swapaxes(1, 2) / 4,
              "weights": weights, "mixed": weights @ v, "made": made,
              "tanh": np.tanh(made)}  # fmt: skip
    calls = (
        *(("MatMul", ("in",), name, product(part))
          for name, part in zip("qkv", np.split(stacked, 3), strict=True)),
        ("MatMul", ("q", "k"), "scores", {}), ("Softmax", ("scores",), "weights", {}),
        ("MatMul", ("weights", "v"), "mixed", {}),
        ("MatMul", ("mixed",), "made", product(out)), ("Tanh", ("made",), "tanh", {}),
    )  # fmt: skip
    found = compare(path, reference_of(arrays, calls), x)
    assert names(found) == ["mix"]
    reason = found.origins[0].reasons[0]
    assert reason.kind == "weight_layout"
    assert "out_proj.weight" in reason.text


def test_weights_of_queries_and_keys_are_exchanged(make_pair):
    """What moves the elements of each agrees with the other's tensors."""
    x, one, two = normal(40, 1, 20, 16), normal(41, 16, 16) / 4, normal(42, 16, 16) / 4
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("q", 0, 1), linear("k", 0, 2),
        "Tensor.reshape rows 1 1 1 3 shape=(20,16) $input=1 #3=(20,16)f32",
        "Tensor.reshape others 1 1 2 4 shape=(20,16) $input=2 #4=(20,16)f32",
        "torch.transpose turn 1 1 4 5 dim0=0 dim1=1 $input=4 #5=(16,20)f32",
        "torch.matmul scores 2 1 3 5 6 $input=3 $other=5 #6=(20,20)f32",
        "F.softmax soft 1 1 6 7 dim=1 $input=6 #7=(20,20)f32", "pnnx.Output out 1 0 7",
        weights={"q.weight": two, "k.weight": one},
    )  # fmt: skip
    q, k = x @ one.T, x @ two.T
    scores = q[0] @ k[0].T
    powers = np.exp(scores - scores.max(1, keepdims=True))
    arrays = {
        "in": x, "mm": q, "mm2": k, "view": q[0], "view2": k[0], "t": k[0].T,
        "scores": scores, "soft": powers / powers.sum(1, keepdims=True),
    }  # fmt: skip
    calls = (
        ("mm", ("in",), "mm", {"q.weight": one}), ("mm", ("in",), "mm2", {"k.weight": two}),
        ("view", ("mm",), "view", {}), ("view", ("mm2",), "view2", {}),
        ("t", ("view2",), "t", {}), ("mm", ("view", "t"), "scores", {}),
        ("softmax", ("scores",), "soft", {}),
    )  # fmt: skip
    found = compare(path, reference_of(arrays, calls), x)
    assert names(found) == ["q", "k"]
    assert [o.reasons[0].kind for o in found.origins] == ["weight_values"] * 2
    assert "'k'" in found.origins[0].reasons[0].text


def test_a_copy_of_a_layer_has_another_bias(make_pair):
    """Exporters copy a layer that is called twice; of a single input the weights may differ."""
    x, other = normal(50, 1, 16), normal(51, 1, 16)
    weight, bias = normal(52, 16, 16) / 4, normal(53, 16)
    wrong = bias + np.eye(16, dtype=np.float32)[3]
    size = "(1,16)f32"
    layer = "bias=True in_features=16 out_features=16 @bias=(16)f32 @weight=(16,16)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}", f"pnnx.Input in2 0 1 1 #1={size}",
        f"nn.Linear fc 1 1 0 2 {layer} #2={size}", f"nn.Linear copy 1 1 1 3 {layer} #3={size}",
        f"pnnx.Expression end 2 1 2 3 4 expr=mul(@0,@1) #4={size}", "pnnx.Output out 1 0 4",
        weights={"fc.weight": weight, "fc.bias": wrong, "copy.weight": weight,
                 "copy.bias": bias},
    )  # fmt: skip
    a, b = x @ weight.T + bias, other @ weight.T + bias
    arrays = {"in": x, "in2": other, "one": a, "two": b, "mul": a * b}
    given = {"fc.weight": weight, "fc.bias": bias}
    calls = (
        ("addmm", ("in",), "one", given), ("addmm", ("in2",), "two", given),
        ("mul", ("one", "two"), "mul", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x, other))
    assert (name, kind) == ("fc", "bias")
    assert "bias of 'copy'" in text


def test_a_constant_that_nobody_reads_is_what_a_sum_has_lost(make_pair):
    x, weight, shift = normal(43, 1, 20, 16), normal(44, 16, 16) / 4, normal(45, 1, 20, 1)
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("fc", 0, 1),
        "pnnx.Attribute shift 0 1 2 @data=(1,20,1)f32 #2=(1,20,1)f32",
        f"nn.Identity sum 1 1 1 3 #3={SIZE}", f"F.tanh act 1 1 3 4 $input=3 #4={SIZE}",
        "pnnx.Output out 1 0 4", weights={"fc.weight": weight, "shift.data": shift},
    )  # fmt: skip
    a = x @ weight.T
    arrays = {"in": x, "mm": a, "add": a + shift, "tanh": np.tanh(a + shift)}
    calls = (
        ("mm", ("in",), "mm", {"fc.weight": weight}), ("add", ("mm",), "add", {}),
        ("tanh", ("add",), "tanh", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x))
    assert (name, kind) == ("sum", "expression")
    assert "adds the result of 'shift'" in text


def test_a_sum_that_looks_normalized_is_lost(make_pair):
    """The blocks of a new network add little to rows that a norm has made."""
    x, weight, second = (
        normal(54, 1, 20, 16),
        normal(55, 16, 16) / 9e3,
        normal(56, 16, 16) / 2e3,
    )
    norm = f"elementwise_affine=False eps=1e-9 normalized_shape=(16) #{{}}={SIZE}"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}",
        f"nn.LayerNorm first 1 1 0 1 {norm.format(1)}", linear("fc", 1, 2),
        f"nn.Identity sum 1 1 2 3 #3={SIZE}",
        f"nn.LayerNorm next 1 1 3 4 {norm.format(4)}", linear("fc2", 4, 5),
        f"pnnx.Expression sum2 2 1 5 3 6 expr=add(@0,@1) #6={SIZE}",
        f"nn.LayerNorm last 1 1 6 7 {norm.format(7)}", "pnnx.Output out 1 0 7",
        weights={"fc.weight": weight, "fc2.weight": second},
    )  # fmt: skip

    def normed(rows):
        rows = rows.astype(np.float64)
        centred = rows - rows.mean(-1, keepdims=True)
        return (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-9)).astype("f4")

    a = normed(x)
    b = a @ weight.T
    c = a + b
    d = normed(c)
    e = d @ second.T
    arrays = {"in": x, "norm": a, "mm": b, "add": c, "norm2": d, "mm2": e, "add2": e + c,
              "norm3": normed(e + c)}  # fmt: skip
    calls = (
        ("layer_norm", ("in",), "norm", {}), ("mm", ("norm",), "mm", {"fc.weight": weight}),
        ("add", ("mm", "norm"), "add", {}), ("layer_norm", ("add",), "norm2", {}),
        ("mm", ("norm2",), "mm2", {"fc2.weight": second}),
        ("add", ("mm2", "add"), "add2", {}), ("layer_norm", ("add2",), "norm3", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x))
    assert (name, kind) == ("sum", "expression")
    assert "adds the result of 'first'" in text


def test_a_part_of_a_chunk_has_lost_its_gate(make_pair):
    """The other part agrees, so it is not the chunk that is wrong."""
    x, weight = normal(48, 1, 20, 16), normal(49, 16, 16) / 4
    part = "(1,20,8)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("fc", 0, 1),
        f"torch.chunk halves 1 2 1 2 3 chunks=2 dim=2 $input=1 #2={part} #3={part}",
        f"F.tanh act 1 1 2 4 $input=2 #4={part}",
        f"pnnx.Expression gated 2 1 4 3 5 expr=mul(@0,@1) #5={part}", "pnnx.Output out 1 0 5",
        weights={"fc.weight": weight},
    )  # fmt: skip
    y = x @ weight.T
    value, gate = np.tanh(y[..., :8]), 1 / (1 + np.exp(-y[..., 8:]))
    arrays = {
        "in": x, "mm": y, "one": y[..., :8], "two": y[..., 8:], "tanh": value, "gate": gate,
        "mul": value * gate,
    }  # fmt: skip
    calls = (
        ("mm", ("in",), "mm", {"fc.weight": weight}), ("slice", ("mm",), "one", {}),
        ("slice", ("mm",), "two", {}), ("tanh", ("one",), "tanh", {}),
        ("sigmoid", ("two",), "gate", {}), ("mul", ("tanh", "gate"), "mul", {}),
    )  # fmt: skip
    _, kind, text = first_reason(compare(path, reference_of(arrays, calls), x))
    assert kind == "activation_missing"
    assert "applies sigmoid" in text


def test_a_sum_before_an_activation_that_changes_nothing(make_pair):
    """The reference shows both; its sum is not taken for the activation's result."""
    x, other = np.abs(normal(46, 1, 20, 16)), np.abs(normal(47, 1, 20, 16)) / 2
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", f"pnnx.Input in2 0 1 1 #1={SIZE}",
        f"pnnx.Expression sum 2 1 0 1 2 expr=sub(@0,@1) #2={SIZE}",
        f"F.leaky_relu act 1 1 2 3 negative_slope=0.2 $input=2 #3={SIZE}",
        "torch.gt mask 1 1 1 4 other=0.3 $input=1 #4=(1,20,16)bool",
        f"Tensor.masked_fill fill 2 1 3 4 5 value=-1e9 $input=3 $mask=4 #5={SIZE}",
        f"F.softmax soft 1 1 5 6 dim=2 $input=5 #6={SIZE}", "pnnx.Output out 1 0 6",
    )  # fmt: skip
    total = x + other
    filled = np.where(other > 0.3, np.float32(-1e9), total)
    powers = np.exp(filled - filled.max(2, keepdims=True))
    arrays = {
        "in": x, "in2": other, "add": total, "leaky": total, "gt": other > 0.3,
        "filled": filled, "soft": powers / powers.sum(2, keepdims=True),
    }  # fmt: skip
    calls = (
        ("add", ("in", "in2"), "add", {}), ("leaky_relu", ("add",), "leaky", {}),
        ("gt", ("in2",), "gt", {}), ("masked_fill", ("leaky", "gt"), "filled", {}),
        ("softmax", ("filled",), "soft", {}),
    )  # fmt: skip
    name, kind, text = first_reason(compare(path, reference_of(arrays, calls), x, other))
    assert (name, kind) == ("sum", "expression")
    assert "add(@0,@1)" in text


@pytest.mark.parametrize("function", ["sigmoid", "tanh"])
def test_branches_of_which_one_reads_a_constant_are_exchanged(make_pair, function):
    """The sum with the constant is not lost: another operator of ours reads it."""
    rng = np.random.default_rng(6)
    x, y, base = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((1, 5, 8), (1, 5, 8), (8,))
    )
    size = "(1,5,8)f32"
    pair = make_pair(
        f"pnnx.Input in0 0 1 0 #0={size}",
        f"pnnx.Input in1 0 1 9 #9={size}",
        "pnnx.Attribute base 0 1 1 @data=(8)f32 #1=(8)f32",
        f"F.silu one 1 1 0 2 #0={size} #2={size}",
        f"F.softsign other 1 1 9 3 #9={size} #3={size}",
        f"F.{function} gate 1 1 3 4 #3={size} #4={size}",
        f"pnnx.Expression sum 2 1 1 2 5 expr=add(@0,@1) #1=(8)f32 #2={size} #5={size}",
        f"F.{function} decay 1 1 5 6 #5={size} #6={size}",
        f"pnnx.Expression both 2 1 4 6 7 expr=mul(@0,@1) #4={size} #6={size} #7={size}",
        f"F.softmax soft 1 1 7 8 dim=-1 #7={size} #8={size}",
        f"pnnx.Output out0 1 0 8 #8={size}",
        weights={"base.data": base},
    )
    session = engine.Session(engine.load(pair), backend="numpy")
    session.feed([x, y])
    apply = {"sigmoid": lambda v: 1 / (1 + np.exp(-v)), "tanh": np.tanh}[function]
    one, other = x / (1 + np.exp(-x)), y / (1 + np.abs(y))
    gate, total = apply(one), base + other
    decay = apply(total)
    powers = np.exp(gate * decay)
    arrays = {
        "in0x": x, "in1x": y, "base": base, "one": one, "other": other, "total": total,
        "decay": decay, "gate": gate, "both": gate * decay,
        "soft": powers / powers.sum(-1, keepdims=True),
    }  # fmt: skip
    tensors = [
        ReferenceTensor(
            key, lambda array=array: array, role="constant" if key == "base" else ""
        )
        for key, array in arrays.items()
    ]
    calls = [
        ReferenceOperator(name, type_, inputs, (name,), dict)
        for name, type_, inputs in (
            ("one", "aten.silu", ("in0x",)),
            ("other", "aten.softsign", ("in1x",)),
            ("total", "aten.add", ("base", "other")),
            ("decay", f"aten.{function}", ("total",)),
            ("gate", f"aten.{function}", ("one",)),
            ("both", "aten.mul", ("gate", "decay")),
            ("soft", "aten._softmax", ("both",)),
        )
    ]
    reference = Reference("theirs", tensors, calls, ["in0x", "in1x"], ["soft"])
    found = engine.compare(session, reference)
    assert {o.operator.name: o.reasons[0].text for o in found.origins} == {
        "gate": "The reference reads 'one' here, the file 'other'. Connect that one.",
        "sum": "The reference reads 'other' here, the file 'one'. Connect that one.",
    }


def test_keys_and_values_that_several_heads_share_are_exchanged(make_pair):
    """What repeats a tensor does so with any, and confirms no guess at it.

    The keys and values of earlier words are joined with the new ones, as in a decoder.
    """
    heads, joined, many = "(1,2,5,8)f32", "(1,2,11,8)f32", "(1,4,11,8)f32"
    grouped = "(1,2,2,11,8)f32"

    def branch(source, made, past):
        n = int(made)
        return (
            f"Tensor.reshape r{n} 1 1 {source} {n} shape=(1,5,2,8) #{n}=(1,5,2,8)f32",
            f"torch.transpose t{n} 1 1 {n} {n + 1} dim0=1 dim1=2 #{n + 1}={heads}",
            *((f"F.tanh act 1 1 {n + 1} {n + 2} $input={n + 1} #{n + 2}={heads}",) * (n == 10)),
            f"torch.cat c{n} 2 1 {past} {n + 1 + (n == 10)} {n + 3} dim=2 #{n + 3}={joined}",
            f"torch.unsqueeze u{n} 1 1 {n + 3} {n + 4} dim=2 #{n + 4}=(1,2,1,11,8)f32",
            f"Tensor.expand e{n} 1 1 {n + 4} {n + 5} sizes=(1,2,2,11,8) #{n + 5}={grouped}",
            f"Tensor.reshape w{n} 1 1 {n + 5} {n + 6} shape=(1,4,11,8) #{n + 6}={many}",
        )

    x, q = normal(0, 1, 5, 16), normal(1, 1, 4, 5, 8)
    past_k, past_v = normal(2, 1, 2, 6, 8), normal(3, 1, 2, 6, 8)
    one, two = normal(4, 16, 16) / 4, normal(5, 16, 16) / 4
    small = "in_features=16 out_features=16 @weight=(16,16)f32"
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,5,16)f32", "pnnx.Input q 0 1 1 #1=(1,4,5,8)f32",
        "pnnx.Input pk 0 1 2 #2=(1,2,6,8)f32", "pnnx.Input pv 0 1 3 #3=(1,2,6,8)f32",
        f"nn.Linear key 1 1 0 4 bias=False {small} #4=(1,5,16)f32",
        f"nn.Linear value 1 1 0 5 bias=False {small} #5=(1,5,16)f32",
        *branch("5", "10", "2"), *branch("4", "20", "3"),
        "torch.transpose turn 1 1 16 30 dim0=2 dim1=3 #30=(1,4,8,11)f32",
        "torch.matmul scores 2 1 1 30 31 #31=(1,4,5,11)f32",
        "F.softmax soft 1 1 31 32 dim=-1 $input=31 #32=(1,4,5,11)f32",
        "torch.matmul mixed 2 1 32 26 33 #33=(1,4,5,8)f32", "pnnx.Output out 1 0 33",
        weights={"key.weight": one, "value.weight": two},
    )  # fmt: skip
    arrays, calls = {"in": x, "q": q, "pk": past_k, "pv": past_v}, []

    def call(kind, inputs, made, result, weights=None):
        arrays[made] = np.ascontiguousarray(result)
        calls.append((kind, inputs, made, weights or {}))
        return result

    def theirs(name, weight, past, *, active):
        y = call("mm", ("in",), f"{name} mm", x @ weight.T, {f"{name}.weight": weight})
        y = call("view", (f"{name} mm",), f"{name} view", y.reshape(1, 5, 2, 8))
        y = call("transpose", (f"{name} view",), f"{name} heads", y.transpose(0, 2, 1, 3))
        new = f"{name} heads"
        if active:
            y, new = call("tanh", (new,), f"{name} tanh", np.tanh(y)), f"{name} tanh"
        y = call("cat", (past, new), f"{name} cat", np.concatenate([arrays[past], y], 2))
        y = call("unsqueeze", (f"{name} cat",), f"{name} unsqueeze", y[:, :, None])
        y = np.broadcast_to(y, (1, 2, 2, 11, 8))
        y = call("expand", (f"{name} unsqueeze",), f"{name} expand", y)
        return call("view", (f"{name} expand",), f"{name} all", y.reshape(1, 4, 11, 8))

    k = theirs("key", one, "pk", active=True)
    v = theirs("value", two, "pv", active=False)
    turned = call("transpose", ("key all",), "turned", k.transpose(0, 1, 3, 2))
    scores = call("bmm", ("q", "turned"), "scores", q @ turned)
    share = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    call("softmax", ("scores",), "softmax", share)
    call("bmm", ("softmax", "value all"), "mixed", share @ v)
    comparison = compare(path, reference_of(arrays, calls), x, q, past_k, past_v)
    assert names(comparison) == ["act", "c20"]
    assert [o.reasons[0].text for o in comparison.origins] == [
        "The reference reads 't20' here, the file 't10'. Connect that one.",
        "The reference reads 't10' here, the file 't20'. Connect that one.",
    ]


def test_a_state_of_zeros_confirms_no_guess(make_pair):
    """The first step multiplies it by the decay, whatever that is; the second step tells."""
    x, weight, start = normal(0, 1, 20, 16), normal(1, 16, 16) / 4, np.zeros((1, 20, 16), "f4")
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", f"pnnx.Attribute start 0 1 1 @data={SIZE} #1={SIZE}",
        f"pnnx.Expression decay 1 1 0 2 expr=square(mul(@0,-0.6)) #2={SIZE}",
        "Tensor.reshape flat 1 1 2 8 shape=(20,16) $input=2 #8=(20,16)f32",
        f"torch.unsqueeze again 1 1 8 9 dim=0 $input=8 #9={SIZE}",
        f"F.tanh act 1 1 0 3 $input=0 #3={SIZE}", linear("first", 3, 4),
        f"pnnx.Expression one 3 1 1 9 4 5 expr=add(mul(@0,@1),mul(@2,0.5)) #5={SIZE}",
        linear("second", 5, 6),
        f"pnnx.Expression two 3 1 5 9 6 7 expr=add(mul(@0,@1),mul(@2,0.5)) #7={SIZE}",
        "pnnx.Output out 1 0 7",
        weights={"start.data": start, "first.weight": weight, "second.weight": weight},
    )  # fmt: skip
    decay, b = np.exp(np.float32(-0.6) * x), np.tanh(x)
    c = b @ weight.T
    one, d = c / 2, c / 2 @ weight.T
    arrays = {
        "in": x, "start": start, "scaled": np.float32(-0.6) * x, "decay": decay, "tanh": b,
        "mm": c, "kept": start * decay, "half": c / 2, "one": one, "mm2": d,
        "kept2": one * decay, "half2": d / 2, "two": one * decay + d / 2,
    }  # fmt: skip
    calls = (
        ("mul", ("in",), "scaled", {}), ("exp", ("scaled",), "decay", {}),
        ("tanh", ("in",), "tanh", {}), ("mm", ("tanh",), "mm", {}),
        ("mul", ("start", "decay"), "kept", {}), ("mul", ("mm",), "half", {}),
        ("add", ("kept", "half"), "one", {}), ("mm", ("one",), "mm2", {}),
        ("mul", ("one", "decay"), "kept2", {}), ("mul", ("mm2",), "half2", {}),
        ("add", ("kept2", "half2"), "two", {}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x)
    assert names(comparison) == ["decay"]
    assert "exp(mul(@0,-0.6))" in comparison.origins[0].reasons[0].text


def test_an_operator_should_read_a_tensor_that_the_file_computes_later(make_pair):
    """The order of lines is no more than an order in which the wrong file can run."""
    x, weight = normal(0, 1, 20, 16), normal(1, 16, 16) / 4
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", f"F.tanh left 1 1 0 1 $input=0 #1={SIZE}",
        f"F.silu act 1 1 1 2 $input=1 #2={SIZE}", linear("right", 0, 3),
        f"pnnx.Expression end 2 1 2 3 4 expr=add(@0,mul(@1,3.0)) #4={SIZE}",
        f"F.relu other 1 1 1 5 $input=1 #5={SIZE}",
        "pnnx.Output out 1 0 4", "pnnx.Output out2 1 0 5",
        weights={"right.weight": weight},
    )  # fmt: skip
    a, b = np.tanh(x), x @ weight.T
    c = b / (1 + np.exp(-b))
    arrays = {"in": x, "tanh": a, "mm": b, "silu": c, "mul": 3 * b, "add": c + 3 * b,
              "relu": np.maximum(a, 0)}  # fmt: skip
    calls = (
        ("tanh", ("in",), "tanh", {}), ("mm", ("in",), "mm", {"right.weight": weight}),
        ("silu", ("mm",), "silu", {}), ("mul", ("mm",), "mul", {}),
        ("add", ("silu", "mul"), "add", {}), ("relu", ("tanh",), "relu", {}),
    )  # fmt: skip
    comparison = compare(path, reference_of(arrays, calls), x)
    assert names(comparison) == ["act"]
    assert "reads 'right' here, the file 'left'" in comparison.origins[0].reasons[0].text


def test_constants_with_each_other_s_numbers_are_told_by_their_names(make_pair):
    """What follows does the same with both, up to sums that are read in different ways."""
    rng = np.random.default_rng(12)
    x = rng.standard_normal((1, 3, 8)).astype("f4")
    one, two = (rng.standard_normal((3, 8)).astype("f4") for _ in range(2))
    size = "(1,3,8)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        "pnnx.Attribute one 0 1 1 @data=(3,8)f32 #1=(3,8)f32",
        "pnnx.Attribute two 0 1 2 @data=(3,8)f32 #2=(3,8)f32",
        f"pnnx.Expression mul1 2 1 0 1 3 expr=mul(@0,@1) #3={size}",
        f"pnnx.Expression mul2 2 1 0 2 4 expr=mul(@0,@1) #4={size}",
        "torch.sum sum1 1 1 3 5 dim=(2) keepdim=False $input=3 #5=(1,3)f32",
        "torch.sum sum2 1 1 4 6 dim=(2) keepdim=False $input=4 #6=(1,3)f32",
        "pnnx.Expression end 2 1 5 6 7 expr=add(@0,tanh(@1)) #7=(1,3)f32",
        "pnnx.Output out 1 0 7",
        weights={"one.data": two, "two.data": one},
    )
    sums = (x * one).sum(2), (x * two).sum(2)
    arrays = {"in": x, "one": one, "mul1": x * one, "sum1": sums[0], "two": two,
              "mul2": x * two, "sum2": sums[1], "tanh": np.tanh(sums[1]),
              "add": sums[0] + np.tanh(sums[1])}  # fmt: skip
    calls = (
        ("mul", ("in", "one"), "mul1"), ("sum", ("mul1",), "sum1"),
        ("mul", ("in", "two"), "mul2"), ("sum", ("mul2",), "sum2"),
        ("tanh", ("sum2",), "tanh"), ("add", ("sum1", "tanh"), "add"),
    )  # fmt: skip
    tensors = [
        ReferenceTensor(key, lambda a=a: a, (key,), role="constant")
        if key in {"one", "two"}
        else ReferenceTensor(key, lambda a=a: a)
        for key, a in arrays.items()
    ]
    operators = [
        ReferenceOperator(f"{kind}{place}", kind, given, (made,))
        for place, (kind, given, made) in enumerate(calls)
    ]
    found = compare(path, Reference("theirs", tensors, operators, ("in",), ("add",)), x)
    assert [origin.operator.name for origin in found.origins] == ["one", "two"]
    assert "has the data of 'two' here" in found.origins[0].reasons[0].text
    assert "has the data of 'one' here" in found.origins[1].reasons[0].text
