"""Elements of a whole layer of an encoder, against PyTorch's module in float64."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.provenance.records import Kind

SAMPLES, TOKENS, WIDTH, HIDDEN, HEADS = 2, 5, 8, 12, 2
NAMES = {
    "self_attn.in_proj_weight": "qkv_weight",
    "self_attn.in_proj_bias": "qkv_bias",
    "self_attn.out_proj.weight": "proj_weight",
    "self_attn.out_proj.bias": "proj_bias",
    "norm1.weight": "norm_weight_1",
    "norm1.bias": "norm_bias_1",
    "norm2.weight": "norm_weight_2",
    "norm2.bias": "norm_bias_2",
    "linear1.weight": "ffn_weight_1",
    "linear1.bias": "ffn_bias_1",
    "linear2.weight": "ffn_weight_2",
    "linear2.bias": "ffn_bias_2",
}


def make(make_pair, torch, activation, *, norm_first, padding):
    """Return a session of the operator, and PyTorch's module and source."""
    torch.manual_seed(3)
    module = torch.nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, 0.0, activation, batch_first=True, norm_first=norm_first,
        dtype=torch.float64,
    )  # fmt: skip
    with torch.no_grad():
        for each in module.parameters():
            each.copy_(torch.randn(each.shape).float() * 0.4)
    weights = {
        NAMES[name]: each.detach().numpy().astype(np.float32)
        for name, each in module.named_parameters()
    }
    texts = " ".join(
        f"@{name}=({','.join(map(str, each.shape))})f32" for name, each in weights.items()
    )
    inputs, masks = ["pnnx.Input in 0 1 x #x=(2,5,8)f32"], "$src=x"
    if padding:
        inputs.append("pnnx.Input in1 0 1 m #m=(2,5)bool")
        masks = "$src=x $mask=m mask_type=1"
    path = make_pair(
        *inputs,
        f"aten::_transformer_encoder_layer_fwd op {len(inputs)} 1 "
        f"{'x m' if padding else 'x'} y embed_dim=8 num_heads=2 "
        f"use_gelu={activation == 'gelu'} norm_first={norm_first} "
        f"eps=1e-5 {masks} {texts} #y=(2,5,8)f32",
        "pnnx.Output out 1 0 y",
        weights={f"op.{name}": each for name, each in weights.items()},
    )
    session = engine.Session(engine.load(path), "numpy")
    x = torch.randn(SAMPLES, TOKENS, WIDTH).float()
    ignored = np.zeros((SAMPLES, TOKENS), np.bool_)
    ignored[1, 3:] = padding
    session.feed([x.numpy(), ignored] if padding else [x.numpy()])
    session.run()
    source = x.double().requires_grad_()
    module.train()  # the slow path, which has gradients; without dropout it is the same
    result = module(source, src_key_padding_mask=torch.tensor(ignored))
    return session, source, result, weights


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("padding", [False, True])
def test_elements_and_their_slopes_are_those_of_pytorch(
    make_pair, activation, norm_first, padding
):
    torch = pytest.importorskip("torch")
    session, source, result, weights = make(
        make_pair, torch, activation, norm_first=norm_first, padding=padding
    )
    for index in ((0, 0, 0), (1, 2, 5), (1, 4, 7)):
        found = engine.explain_element(session, "y", index)
        assert (found.kind, found.reason) == (Kind.SUM, "")
        assert found.agrees
        breakdown = found.breakdown
        assert breakdown.total == pytest.approx(float(result[index].detach()), abs=1e-9)
        assert breakdown.error <= 1e-3 * (1 + abs(found.value))
        hidden, row, *_ = breakdown.terms.factors
        assert hidden.values.shape == row.values.shape == (HIDDEN,)
        np.testing.assert_array_equal(row.values, weights["ffn_weight_2"][index[2]])
        field = engine.receptive_field(session, "y", index)
        assert field.guessed == ()
        assert field.inputs[0].slices[0] == slice(index[0], index[0] + 1)
        assert engine.check_field(session, "y", index).is_same
        (slopes,) = torch.autograd.grad(result[index], source, retain_graph=True)
        own = engine.effective_weight(session, "y", index, "x").gradient
        np.testing.assert_allclose(own, slopes.numpy(), atol=1e-8)


def test_the_token_goes_around_the_block(make_pair):
    torch = pytest.importorskip("torch")
    session, *_ = make(make_pair, torch, "relu", norm_first=True, padding=False)
    found = engine.explain_element(session, "y", (1, 2, 5)).breakdown
    assert found.formula == (
        "y[1, 2, 5] = z + b + Σ hidden[k] · ffn_weight_2[5, k], z the token after attention"
    )
    assert found.steps[0].name == "the token after attention"
    assert (found.terms.factors[0].values >= 0).all()
    assert found.total == pytest.approx(found.terms.products.sum() + found.offset, abs=1e-12)
