"""Terms, regions and slopes of losses, against PyTorch's and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from provenance.campaign import Findings, try_operator

import engine
from engine.provenance.backward import go_back
from engine.provenance.call import Call
from engine.provenance.records import Kind

RNG = np.random.default_rng(31)
SHARES = RNG.uniform(0.1, 0.9, (3, 4)).astype(np.float32)
SIGNS = np.where(RNG.random((3, 4)) < 0.5, -1, 1).astype(np.float32)
LOGITS = RNG.normal(size=(3, 4)).astype(np.float32)
OTHERS = RNG.normal(size=(3, 4)).astype(np.float32)
WEIGHTS = np.array([0.5, 2, 1, 3], np.float32)
CLASSES = np.array([2, 0, 1])

# Type, parameters and operands by name.
CASES = {
    "mse": ("F.mse_loss", "", {"input": LOGITS, "target": OTHERS}),
    "l1": ("F.l1_loss", "", {"input": LOGITS, "target": OTHERS}),
    "smooth": ("F.smooth_l1_loss", "beta=0.5", {"input": LOGITS, "target": OTHERS}),
    "huber": ("F.huber_loss", "delta=0.7", {"input": LOGITS, "target": OTHERS}),
    "margin": ("F.soft_margin_loss", "", {"input": LOGITS, "target": SIGNS}),
    "ranking": (
        "F.margin_ranking_loss",
        "margin=0.3",
        {"input1": LOGITS, "input2": OTHERS, "target": SIGNS},
    ),
    "divergence": ("F.kl_div", "", {"input": LOGITS, "target": SHARES}),
    "poisson": ("F.poisson_nll_loss", "", {"input": LOGITS, "target": SHARES}),
    "binary": ("F.binary_cross_entropy", "", {"input": SHARES, "target": SHARES[::-1].copy()}),
    "logits": (
        "F.binary_cross_entropy_with_logits",
        "",
        {"input": LOGITS, "target": SHARES, "weight": WEIGHTS},
    ),
    "likelihood": (
        "F.nll_loss",
        "ignore_index=0",
        {"input": LOGITS, "target": CLASSES, "weight": WEIGHTS},
    ),
    "classes": (
        "F.cross_entropy",
        "label_smoothing=0.1",
        {"input": LOGITS, "target": CLASSES, "weight": WEIGHTS},
    ),
    "probabilities": ("F.cross_entropy", "", {"input": LOGITS, "target": SHARES}),
}


@pytest.fixture
def run(make_pair):
    """Run a loss on operands by name."""

    def run(kind, parameters, operands):
        texts = [
            f"pnnx.Input in_{name} 0 1 {name} #{name}=({','.join(map(str, each.shape))})"
            f"{'f32' if each.dtype.kind == 'f' else 'i64'}"
            for name, each in operands.items()
        ]
        names = " ".join(operands)
        given = " ".join([f"${name}={name}" for name in operands])
        path = make_pair(
            *texts,
            f"{kind} op {len(operands)} 1 {names} y {parameters} {given}",
            "pnnx.Output out 1 0 y",
        )
        session = engine.Session(engine.load(path), "numpy")
        session.feed([*operands.values()])
        session.run()
        return session

    return run


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", CASES)
def test_terms_regions_and_slopes(run, name, reduction):
    """Noise outside of the regions changes nothing, and quotients of differences agree."""
    kind, parameters, operands = CASES[name]
    session = run(kind, f"reduction={reduction} {parameters}", operands)
    findings = Findings()
    operator = session.graph.operator("op")
    try_operator("op", session, operator, findings, np.random.default_rng(4), 6)
    assert findings.wrong == []
    assert findings.unexplained.total() == findings.unfollowed.total() == 0
    assert findings.explained == 6


@pytest.mark.parametrize("name", CASES)
def test_slopes_are_those_of_pytorch(run, name):
    torch = pytest.importorskip("torch")
    kind, parameters, operands = CASES[name]
    session = run(kind, f"reduction=sum {parameters}", operands)
    back = go_back(Call.of(session, session.graph.operator("op"), 0), np.ones(()))
    followed = [each for each in ("input", "input1", "input2") if each in operands]
    tensors = {key: torch.from_numpy(each).double() if each.dtype.kind == "f"
               else torch.from_numpy(each) for key, each in operands.items()}  # fmt: skip
    for each in followed:
        tensors[each].requires_grad_()
    options = dict(part.split("=") for part in parameters.split())
    options = {
        key: int(text) if text.isdigit() else float(text) for key, text in options.items()
    }
    loss = getattr(torch.nn.functional, kind.removeprefix("F."))
    loss(**tensors, **options, reduction="sum").backward()
    for each in followed:
        np.testing.assert_allclose(back[each], tensors[each].grad.numpy(), rtol=1e-4, atol=1e-5)


def test_the_mean_counts_samples_by_their_classes(run):
    """By hand: of three samples the second one is ignored, and the weights are 1 and 2."""
    given = {"input": LOGITS, "target": CLASSES, "weight": WEIGHTS}
    session = run("F.nll_loss", "reduction=mean ignore_index=0", given)
    found = engine.explain_element(session, "y", ())
    assert found.kind is Kind.SUM
    expected = [-1 * float(LOGITS[0, 2]) / 3, 0, -2 * float(LOGITS[2, 1]) / 3]
    assert found.breakdown.terms.products.tolist() == pytest.approx(expected)
    assert found.breakdown.terms.factors[0].values.tolist() == [2, 0, 1]


def test_each_element_has_its_share_of_the_mean(run):
    given = {"input": LOGITS, "target": OTHERS}
    session = run("F.mse_loss", "reduction=mean", given)
    terms = engine.explain_element(session, "y", ()).breakdown.terms
    assert terms.shape == (3, 4)
    differences = [(float(LOGITS[at]) - float(OTHERS[at])) ** 2 / 12 for at in np.ndindex(3, 4)]
    assert terms.products.tolist() == pytest.approx(differences)


def test_one_sample_is_a_function_of_its_row(run):
    given = {"input": LOGITS, "target": CLASSES}
    session = run("F.cross_entropy", "reduction=none", given)
    found = engine.explain_element(session, "y", (1,))
    assert found.kind is Kind.FUNCTION
    total = math.log(sum(math.exp(each) for each in LOGITS[1].tolist())) - float(LOGITS[1, 0])
    assert found.breakdown.total == pytest.approx(total)
    regions = {each.operand: each.slices for each in found.sources}
    assert regions["input"] == (slice(1, 2), slice(0, 4))
