"""Weights of attentions, against a slow loop and against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from attention_graphs import (
    Run,
    module_line,
    module_weights,
    slow_weights,
    text_lines,
    window_lines,
    window_rollout_by_hand,
    window_weights,
)
from ncnn_files import f32, tagged, write_pair

from engine.attention import find_attentions, find_heads, scores
from engine.attention.results import Place
from engine.attention.scores import compute_attention, compute_rollout, rollout
from engine.attention.window_rollout import compute_window_rollout
from engine.axes import infer_layouts
from engine.errors import LayerError

FUNCTION = "F.scaled_dot_product_attention"
RNG = np.random.default_rng(11)


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def compute(run, number=0, **place):
    attention = find_attentions(run.graph)[number]
    heads = find_heads(run.graph, attention, run.layouts.get)
    return compute_attention(
        run.graph, attention, run.session.value, Place(**{"heads": heads, **place})
    )


def sdpa_line(query, key, *, mask="", **params):
    """Lines of ``F.scaled_dot_product_attention`` with operands of these shapes."""
    shapes = {"q": query, "k": key, "v": key}
    lines = [
        f"pnnx.Input in{n} 0 1 {n} #{n}=({','.join(map(str, shape))})f32"
        for n, shape in shapes.items()
    ]
    if mask:
        lines.append(f"pnnx.Input inm 0 1 m #m={mask}")
    names = [*shapes, *(["m"] if mask else [])]
    given = " ".join(f"{key}={value}" for key, value in params.items())
    bound = "$query=q $key=k $value=v" + (" $attn_mask=m" if mask else "")
    out = ",".join(map(str, query))
    return [
        *lines,
        f"{FUNCTION} sdpa {len(names)} 1 {' '.join(names)} o {given} {bound} #o=({out})f32",
        f"pnnx.Output out 1 0 o #o=({out})f32",
    ]


def expected_of_module(weights, x, heads, name="attn"):
    """Weights of each head of a module, for one sample of shape (L, E)."""
    size = x.shape[1]
    stacked, bias = weights[f"{name}.in_proj_weight"], weights[f"{name}.in_proj_bias"]
    q, k = (
        x @ stacked[place * size : (place + 1) * size].T + bias[place * size :][:size]
        for place in (0, 1)
    )
    parts = np.split(np.arange(size), heads)
    return np.stack([slow_weights(q[:, part], k[:, part]) for part in parts])


def test_weights_inside_a_module(make_pair) -> None:
    x, weights = some(2, 5, 8), module_weights()
    path = make_pair(
        "pnnx.Input in 0 1 a #a=(2,5,8)f32",
        module_line("a", "b", shape=(2, 5, 8)),
        "pnnx.Output out 1 0 b #b=(2,5,8)f32",
        weights=weights,
    )
    found = compute(Run(path, x))
    assert found.shape == (2, 2, 5, 5)
    for sample in (0, 1):
        expected = expected_of_module(weights, x[sample], 2)
        np.testing.assert_allclose(found.weights[sample], expected, rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(found.weights.sum(-1), 1, rtol=1e-5)
    assert found.output == "b"
    assert found.difference.agrees
    assert [stage.shape for stage in found.stages] == [
        (2, 2, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4), (2, 2, 5, 5), (2, 2, 5, 5), (2, 2, 5, 4),
        (2, 5, 8),
    ]  # fmt: skip
    assert found.stages[4].low == pytest.approx(found.weights.min())
    assert found.stages[4].high == pytest.approx(found.weights.max())


def test_sequences_before_samples(make_pair) -> None:
    x, weights = some(5, 2, 8), module_weights()
    path = make_pair(
        "pnnx.Input in 0 1 a #a=(5,2,8)f32",
        module_line("a", "b", shape=(5, 2, 8), batch_first=False),
        "pnnx.Output out 1 0 b #b=(5,2,8)f32",
        weights=weights,
    )
    found = compute(Run(path, x), sample=1, query=3)
    expected = expected_of_module(weights, x[:, 1], 2)
    np.testing.assert_allclose(found.weights[1], expected, rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(found.rows, expected[:, 3], rtol=2e-4, atol=1e-6)
    assert found.difference.agrees


@pytest.mark.parametrize(
    ("options", "mask"),
    [
        pytest.param({}, None, id="plain"),
        pytest.param({"is_causal": True}, np.tri(4, 6, dtype=bool), id="causal"),
        pytest.param({"scale": 0.3}, None, id="scale"),
        pytest.param({}, RNG.standard_normal((4, 6)).astype(np.float32), id="added"),
        pytest.param({}, np.arange(24).reshape(4, 6) % 5 != 1, id="bool"),
    ],
)
def test_weights_of_the_function(make_pair, options, mask) -> None:
    q, k, v = some(2, 3, 4, 8), some(2, 3, 6, 8), some(2, 3, 6, 8)
    has_mask = mask is not None and not options
    dtype = "" if not has_mask else ("(4,6)bool" if mask.dtype == bool else "(4,6)f32")
    path = make_pair(*sdpa_line(q.shape, k.shape, mask=dtype, **options))
    found = compute(Run(path, q, k, v, *([mask] if has_mask else [])))
    for sample in (0, 1):
        for head in range(3):
            expected = slow_weights(
                q[sample, head], k[sample, head], mask, options.get("scale")
            )
            np.testing.assert_allclose(
                found.weights[sample, head], expected, rtol=2e-4, atol=1e-6
            )
    assert found.difference.agrees
    assert ("mask" in found.stages[3].name) == (mask is not None)


def test_heads_that_share_keys(make_pair) -> None:
    q, k, v = some(1, 4, 3, 8), some(1, 2, 5, 8), some(1, 2, 5, 8)
    path = make_pair(*sdpa_line(q.shape, k.shape, enable_gqa=True))
    found = compute(Run(path, q, k, v), heads=4)
    for head in range(4):
        expected = slow_weights(q[0, head], k[0, head // 2])
        np.testing.assert_allclose(found.weights[0, head], expected, rtol=2e-4, atol=1e-6)
    assert found.difference.agrees


def test_weights_that_are_an_operand(make_pair) -> None:
    q, k, v = some(1, 2, 6, 4), some(1, 2, 6, 4), some(1, 2, 6, 4)
    run = Run(make_pair(*text_lines()), q, k, v)
    found = compute(run, query=2)
    for head in (0, 1):
        expected = slow_weights(q[0, head], k[0, head])
        np.testing.assert_allclose(found.weights[0, head], expected, rtol=2e-4, atol=1e-6)
        np.testing.assert_allclose(found.rows[head], expected[2], rtol=2e-4, atol=1e-6)
    assert found.difference.agrees
    assert [stage.operand for stage in found.stages] == ["q", "kt", "z", "w", "v", "o"]


def test_scores_beside_a_sink(make_pair) -> None:
    """GPT-OSS has one more score for each query, which takes weight and has no value."""
    lines = (
        "pnnx.Input in0 0 1 q #q=(1,2,3,4)f32",
        "pnnx.Input in1 0 1 k #k=(1,2,4,3)f32",
        "pnnx.Input in2 0 1 v #v=(1,2,3,4)f32",
        "pnnx.Input in3 0 1 s #s=(1,2,3,1)f32",
        "torch.matmul first 2 1 q k a $input=q $other=k #a=(1,2,3,3)f32",
        "torch.cat join 2 1 a s b dim=-1 #b=(1,2,3,4)f32",
        "torch.max peak 1 1 b c dim=-1 keepdim=True $input=b #c=(1,2,3,1)f32",
        "pnnx.Expression less 2 1 b c d expr=sub(@0,@1) #d=(1,2,3,4)f32",
        "F.softmax soft 1 1 d w dim=-1 $input=d #w=(1,2,3,4)f32",
        "Tensor.slice cut 1 1 w x dim=3 start=0 end=-1 step=1 $input=w #x=(1,2,3,3)f32",
        "torch.matmul second 2 1 x v o $input=x $other=v #o=(1,2,3,4)f32",
        "pnnx.Output out 1 0 o",
    )
    q, k, v, sink = some(1, 2, 3, 4), some(1, 2, 4, 3), some(1, 2, 3, 4), some(1, 2, 3, 1)
    found = compute(Run(make_pair(*lines), q, k, v, sink))
    assert found.shape == (1, 2, 3, 3)
    for head in (0, 1):
        for row in range(3):
            scores = [float(q[0, head, row] @ k[0, head, :, column]) for column in range(3)]
            shares = np.exp([*scores, float(sink[0, head, row, 0])])
            expected = shares[:3] / shares.sum()
            np.testing.assert_allclose(found.weights[0, head, row], expected, rtol=1e-4)
    assert found.difference.agrees


def test_values_before_their_weights(make_pair) -> None:
    """YOLO11 keeps positions in the last dimension, and weighs values by transposed weights."""
    lines = (
        "pnnx.Input in0 0 1 q #q=(1,2,5,3)f32",
        "pnnx.Input in1 0 1 k #k=(1,2,3,5)f32",
        "pnnx.Input in2 0 1 v #v=(1,2,4,5)f32",
        "torch.matmul first 2 1 q k a $input=q $other=k #a=(1,2,5,5)f32",
        "F.softmax soft 1 1 a w dim=-1 $input=a #w=(1,2,5,5)f32",
        "torch.transpose turn 1 1 w t dim0=-2 dim1=-1 $input=w #t=(1,2,5,5)f32",
        "torch.matmul second 2 1 v t o $input=v $other=t #o=(1,2,4,5)f32",
        "pnnx.Output out 1 0 o",
    )
    q, k, v = some(1, 2, 5, 3), some(1, 2, 3, 5), some(1, 2, 4, 5)
    run = Run(make_pair(*lines), q, k, v)
    found = compute(run)
    for head in (0, 1):
        expected = slow_weights(q[0, head], k[0, head].T, scale=1.0)
        np.testing.assert_allclose(found.weights[0, head], expected, rtol=2e-4, atol=1e-6)
        mixed = np.array([[sum(row * one) for one in v[0, head]] for row in expected]).T
        np.testing.assert_allclose(run.session.value("o")[0, head], mixed, rtol=2e-3, atol=1e-5)
    assert found.difference.agrees


def test_many_weights_are_computed_in_blocks(make_pair, monkeypatch) -> None:
    q, k, v = some(2, 3, 9, 8), some(2, 3, 7, 8), some(2, 3, 7, 8)
    run = Run(make_pair(*sdpa_line(q.shape, k.shape)), q, k, v)
    whole = compute(run, sample=1, query=4)
    monkeypatch.setattr(scores, "_BLOCK", 50)
    np.testing.assert_allclose(compute(run).weights, whole.weights, rtol=1e-5)
    monkeypatch.setattr(scores, "MOST_WEIGHTS", 3 * 9 * 7)
    one = compute(run, sample=1, query=4)
    assert one.first == 1
    np.testing.assert_allclose(one.weights, whole.weights[1:], rtol=1e-5)
    assert one.difference.agrees
    monkeypatch.setattr(scores, "MOST_WEIGHTS", 100)
    monkeypatch.setattr(scores, "_SIDE", 3)
    reduced = compute(run, sample=1, query=4)
    assert reduced.block == (3, 3)
    assert reduced.weights.shape == (1, 3, 3, 3)
    for head in range(3):
        for row in range(3):
            for column in range(3):
                part = whole.weights[1, head, 3 * row : 3 * row + 3, 3 * column :][:, :3]
                assert reduced.weights[0, head, row, column] == pytest.approx(part.max())
    np.testing.assert_allclose(reduced.rows, whole.weights[1, :, 4], rtol=1e-5)
    assert reduced.difference.agrees


def test_a_value_that_was_overridden_differs(make_pair) -> None:
    q, k, v = some(1, 2, 4, 8), some(1, 2, 4, 8), some(1, 2, 4, 8)
    run = Run(make_pair(*sdpa_line(q.shape, k.shape)), q, k, v)
    run.session.override("o", np.zeros((1, 2, 4, 8), np.float32))
    run.session.run()
    assert not compute(run).difference.agrees


def test_dropped_weights_are_not_compared(make_pair) -> None:
    q = some(1, 2, 4, 8)
    found = compute(Run(make_pair(*sdpa_line(q.shape, q.shape, dropout_p=0.5)), q, q, q))
    assert found.difference is None
    assert "random" in found.note


def test_what_there_is_not_is_refused(make_pair) -> None:
    q = some(1, 2, 4, 8)
    run = Run(make_pair(*sdpa_line(q.shape, q.shape)), q, q, q)
    for place in ({"query": 4}, {"sample": 1}, {"heads": 3}):
        with pytest.raises(LayerError):
            compute(run, **place)


def test_rollout_by_hand() -> None:
    # Two layers over three tokens. The first token of layer 2 looks at tokens 2 and 3.
    first = np.array([[[1, 0, 0], [1, 0, 0], [0, 0, 1]]], float)
    second = np.array([[[0, 1, 0], [0, 1, 0], [0, 0, 1]], [[0, 0, 1], [0, 1, 0], [0, 0, 1]]])
    # (A1 + I) / 2: rows [1 0 0], [.5 .5 0], [0 0 1]; A2: [0 .5 .5], so
    # (A2 + I) / 2: rows [.5 .25 .25], [0 1 0], [0 0 1].
    expected = [[0.625, 0.125, 0.25], [0.5, 0.5, 0], [0, 0, 1]]
    np.testing.assert_allclose(rollout([first, second.astype(float)]), expected)


def test_rollout_of_blocks(make_pair) -> None:
    lines = [
        "pnnx.Input in 0 1 a #a=(1,5,8)f32",
        module_line("a", "b", name="one"),
        module_line("b", "c", name="two"),
        "pnnx.Output out 1 0 c #c=(1,5,8)f32",
    ]
    weights = module_weights(name="one", seed=1) | module_weights(name="two", seed=2)
    run = Run(make_pair(*lines, weights=weights), some(1, 5, 8))
    blocks = [(attention, 2) for attention in find_attentions(run.graph)]
    found = compute_rollout(run.graph, blocks, run.session.value, 0)
    each = [compute(run, number).weights[0].mean(0) for number in (0, 1)]
    eye = np.eye(5)
    np.testing.assert_allclose(found, ((each[1] + eye) / 2) @ ((each[0] + eye) / 2), rtol=1e-4)
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)


def test_rollout_over_windows_that_are_shifted(make_pair) -> None:
    run = Run(make_pair(*window_lines(), weights=window_weights()), some(1, 3, 12, 12))
    blocks = [(attention, 2) for attention in find_attentions(run.graph)]
    each = [compute(run, number).weights.mean(1) for number in (0, 1)]
    expected = window_rollout_by_hand(each)
    for window in range(4):
        found = compute_window_rollout(
            run.graph, blocks, run.session.value, run.layouts.get, window
        )
        assert found.shape == (4, 4, 4)
        for query in range(4):
            # The windows of the second block begin at (1, 1).
            row = (2 * (window // 2) + query // 2 + 1) % 4
            column = (2 * (window % 2) + query % 2 + 1) % 4
            np.testing.assert_allclose(
                found[query].reshape(-1), expected[4 * row + column], rtol=1e-4, atol=1e-7
            )
            assert found[query].sum() == pytest.approx(1)


def test_rollout_of_other_grids_is_refused(make_pair) -> None:
    run = Run(make_pair(*window_lines(), weights=window_weights()), some(1, 3, 12, 12))
    attentions = [(attention, 2) for attention in find_attentions(run.graph)]
    with pytest.raises(LayerError, match="same grid"):
        compute_window_rollout(run.graph, attentions, run.session.value, lambda _: None, 0)


@pytest.mark.parametrize("extras", [{}, {"add_zero_attn": True}, {"add_bias_kv": True}])
@pytest.mark.parametrize("masked", [False, True])
def test_modules_against_pytorch(make_pair, extras, masked) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(2)
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True, **extras).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    x = torch.randn(2, 5, 8)
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if masked else None
    with torch.no_grad():
        _, expected = module(x, x, x, attn_mask=mask, average_attn_weights=False)
    line = module_line("a", "b", shape=(2, 5, 8))
    for name in extras:
        line = line.replace(f"{name}=False", f"{name}=True")
    if "add_bias_kv" in extras:
        line += " @bias_k=(1,1,8)f32 @bias_v=(1,1,8)f32"
    inputs = [x.numpy()]
    lines = ["pnnx.Input in 0 1 a #a=(2,5,8)f32"]
    if masked:
        line = line.replace("attn 1 1 a b", "attn 2 1 a m b $attn_mask=m")
        lines.append("pnnx.Input inm 0 1 m #m=(5,5)bool")
        inputs.append(mask.numpy())
    weights = {f"attn.{key}": value.numpy() for key, value in module.state_dict().items()}
    path = make_pair(*lines, line, "pnnx.Output out 1 0 b #b=(2,5,8)f32", weights=weights)
    found = compute(Run(path, *inputs))
    np.testing.assert_allclose(found.weights, expected.numpy(), rtol=1e-4, atol=1e-6)
    assert found.difference.agrees


def ncnn_run(folder, line, inputs, weights=b""):
    """A run of one layer of ncnn."""
    lines = [f"Input in{n} 0 1 in{n} {sides}" for n, sides in enumerate(map(sides_of, inputs))]
    names = " ".join(f"in{n}" for n in range(len(inputs)))
    kind, _, arguments = line.partition(" ")
    lines.append(f"{kind} attn {len(inputs)} 1 {names} out {arguments}")
    return Run(write_pair(folder, lines, weights), *inputs)


def sides_of(array):
    ids = (0, 1, 2) if array.ndim == 3 else (0, 1)
    return " ".join(f"{key}={size}" for key, size in zip(ids, array.shape[::-1], strict=True))


@pytest.mark.parametrize("masked", [False, True])
def test_modules_of_ncnn(tmp_path, masked):
    weights = {name: some(8, 8) for name in "qkvo"}
    bias = {name: some(8) for name in "qkvo"}
    data = b"".join([tagged(weights[n]) + f32(bias[n]) for n in "qkvo"])
    x, other, mask = some(5, 8), some(6, 8), some(5, 6)
    inputs = [x, other, other, mask] if masked else [x]
    line = f"MultiHeadAttention 0=8 1=2 2=64 {'5=1' if masked else ''}"
    run = ncnn_run(tmp_path, line, inputs, data)
    (attention,) = find_attentions(run.graph)
    assert attention.value == ("in2" if masked else "in0")
    assert find_heads(run.graph, attention, run.layouts.get) == 2
    found = compute(run)
    q = x @ weights["q"].T + bias["q"]
    k = (other if masked else x) @ weights["k"].T + bias["k"]
    assert found.shape == (1, 2, 5, 6 if masked else 5)
    for head, part in enumerate((slice(0, 4), slice(4, 8))):
        logits = q[:, part] @ k[:, part].T / 2 + (mask if masked else 0)
        powers = np.exp(logits - logits.max(1, keepdims=True))
        expected = powers / powers.sum(1, keepdims=True)
        np.testing.assert_allclose(found.weights[0, head], expected, rtol=1e-4, atol=1e-6)
    assert found.difference.largest < 1e-5


def test_functions_of_ncnn_with_shared_heads(tmp_path):
    query, key, value = some(4, 3, 8), some(2, 5, 8), some(2, 5, 8)
    run = ncnn_run(tmp_path, "SDPA 6=0.5", [query, key, value])
    (attention,) = find_attentions(run.graph)
    assert find_heads(run.graph, attention, run.layouts.get) == 4
    found = compute(run)
    assert found.shape == (1, 4, 3, 5)
    for head in range(4):
        logits = query[head] @ key[head // 2].T * 0.5
        powers = np.exp(logits - logits.max(1, keepdims=True))
        expected = powers / powers.sum(1, keepdims=True)
        np.testing.assert_allclose(found.weights[0, head], expected, rtol=1e-4, atol=1e-6)
    assert found.difference.largest < 1e-5


def test_products_of_ncnn_around_a_softmax(tmp_path):
    query, key, value = some(2, 3, 4), some(2, 5, 4), some(2, 5, 6)
    inputs = [query, key, value]
    lines = [f"Input in{n} 0 1 in{n} {sides_of(each)}" for n, each in enumerate(inputs)]
    lines += [
        "MatMul scores 2 1 in0 in1 a 0=1",
        "BinaryOp scale 1 1 a b 0=2 1=1 2=5.000000e-01",
        "Softmax soft 1 1 b c 0=2 1=1",
        "Split copies 1 2 c d e",
        "MatMul mix 2 1 d in2 out",
    ]
    run = Run(write_pair(tmp_path, lines), *inputs)
    (attention,) = find_attentions(run.graph)
    assert (attention.query, attention.key, attention.value) == ("in0", "in1", "in2")
    assert (attention.weights, attention.output) == ("c", "out")
    shapes = {name: run.session.value(name).shape for name in run.graph.operands}
    layouts = infer_layouts(run.graph, shapes)
    assert layouts["c"].text() == "heads × queries × keys"
    assert find_heads(run.graph, attention, layouts.get) == 2
    run.layouts = layouts
    found = compute(run)
    for head in range(2):
        expected = slow_weights(query[head], key[head], scale=0.5)
        np.testing.assert_allclose(found.weights[0, head], expected, rtol=1e-5, atol=1e-6)
    assert found.difference.agrees
