"""Losses."""

from __future__ import annotations

import torch
from torch.nn import functional

from crosscheck.draw import Draw
from crosscheck.specification import Case, spec, specs

PAIRS = {
    "l1_loss": {}, "mse_loss": {}, "smooth_l1_loss": {"beta": 0.5},
    "huber_loss": {"delta": 0.7},
    "kl_div": {"log_target": True}, "poisson_nll_loss": {"log_input": False, "full": True},
    "binary_cross_entropy": {}, "binary_cross_entropy_with_logits": {},
    "soft_margin_loss": {}, "hinge_embedding_loss": {"margin": 0.5},
    "multilabel_soft_margin_loss": {}, "gaussian_nll_loss": {},
}  # fmt: skip


@specs(dict.fromkeys(PAIRS, ()), tolerance=1e-4)
def of_pairs(draw: Draw, name: str):
    shape = draw.shape(draw.integer(1, 3), 1, 5)
    x, y = draw.uniform(0.05, 0.95, *shape), draw.uniform(0.05, 0.95, *shape)
    more = draw.keywords(**PAIRS[name]) | draw.keywords(
        reduction=draw.one("none", "mean", "sum")
    )
    if name in {"soft_margin_loss", "hinge_embedding_loss"}:
        y = draw.booleans(*shape).float() * 2 - 1
        x = draw.normal(*shape)
    function = getattr(functional, name)
    if name == "gaussian_nll_loss":
        return Case(lambda x, y, v: function(x, y, v, **more), x, y, y + 0.5)
    if name.startswith("binary") and draw.flag(0.3):
        weight = draw.uniform(0.1, 2, *shape)
        return Case(lambda x, y, w: function(x, y, w, **more), x, y, weight)
    return Case(lambda x, y: function(x, y, **more), x, y)


@specs({
    "margin_ranking_loss": (), "triplet_margin_loss": (), "cosine_embedding_loss": (),
}, tolerance=1e-4)  # fmt: skip
def of_three(draw: Draw, name: str):
    batch, width = draw.shape(2, 1, 5)
    function = getattr(functional, name)
    more = draw.keywords(margin=draw.number(0, 1), reduction=draw.one("none", "mean", "sum"))
    x, y = draw.normal(batch, width), draw.normal(batch, width)
    if name == "triplet_margin_loss":
        more |= draw.keywords(p=draw.one(1.0, 2.0), swap=draw.flag())
        return Case(lambda x, y, z: function(x, y, z, **more), x, y, draw.normal(batch, width))
    signs = draw.booleans(batch).float() * 2 - 1
    if name == "margin_ranking_loss":
        x, y = x[:, 0], y[:, 0]
    return Case(lambda x, y, z: function(x, y, z, **more), x, y, signs)


@spec("aten::multilabel_margin_loss", tolerance=1e-4)
def of_several_classes(draw: Draw):
    shape = draw.shape(draw.integer(1, 2), 1, 5)
    classes = draw.shuffled(range(shape[-1]))[: draw.integer(1, shape[-1])]
    row = [*classes, *[-1] * (shape[-1] - len(classes))]
    more = draw.keywords(reduction=draw.one("none", "mean", "sum"))
    return Case(
        lambda x, y: functional.multilabel_margin_loss(x, y, **more),
        draw.normal(*shape), torch.tensor(row).expand(shape).contiguous(),
    )  # fmt: skip


@spec("aten::ctc_loss", tolerance=1e-4)
def of_sequences(draw: Draw):
    batch, classes, most = draw.integer(1, 3), draw.integer(2, 5), draw.integer(1, 4)
    times = draw.integers(2 * most + 1, 12, batch)
    lengths = draw.integers(0, most, batch)
    more = draw.keywords(
        blank=draw.integer(0, classes - 1), reduction=draw.one("none", "mean", "sum"),
        zero_infinity=draw.flag(),
    )  # fmt: skip
    labels = [n for n in range(classes) if n != more.get("blank", 0)]
    targets = torch.tensor([[draw.one(*labels) for _ in range(most)] for _ in range(batch)])
    sizes = (tuple(times.tolist()), tuple(lengths.tolist())) if draw.flag() else None
    x = draw.normal(12, batch, classes).log_softmax(-1)
    if sizes:
        return Case(lambda x, y: functional.ctc_loss(x, y, *sizes, **more), x, targets)
    return Case(
        lambda x, y, t, n: functional.ctc_loss(x, y, t, n, **more), x, targets, times, lengths
    )


@specs({"cross_entropy": (), "nll_loss": (), "multi_margin_loss": ()}, tolerance=1e-4)
def of_classes(draw: Draw, name: str):
    batch, classes = draw.integer(1, 4), draw.integer(2, 5)
    more_dims = draw.shape(draw.one(0, 0, 2) if name != "multi_margin_loss" else 0, 1, 3)
    x = draw.normal(batch, classes, *more_dims)
    y = draw.integers(0, classes - 1, batch, *more_dims)
    more = draw.keywords(reduction=draw.one("none", "mean", "sum"))
    if name != "multi_margin_loss":
        more |= draw.keywords(ignore_index=draw.integer(0, 1))
    if name == "cross_entropy":
        more |= draw.keywords(label_smoothing=draw.number(0, 0.5))
    function = getattr(functional, name)
    if draw.flag(0.3):
        weight = draw.uniform(0.2, 1, classes)
        return Case(lambda x, y, w: function(x, y, weight=w, **more), x, y, weight)
    if name == "cross_entropy" and draw.flag(0.3):
        more.pop("ignore_index", None)
        return Case(
            lambda x, y: function(x, y, **more), x, torch.softmax(draw.normal(*x.shape), 1)
        )
    return Case(lambda x, y: function(x, y, **more), x, y)
