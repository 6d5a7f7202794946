"""The logit lens against norm and head by hand."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.logit_lens import find_lens
from engine.output_reading import read_output

RNG = np.random.default_rng(8)
WORDS, WIDTH = 1000, 8
WEIGHTS = {
    "embed.weight": RNG.normal(size=(WORDS, WIDTH)).astype(np.float32),
    "branch.weight": RNG.normal(size=(WIDTH, WIDTH)).astype(np.float32),
    "norm.weight": RNG.normal(size=WIDTH).astype(np.float32),
    "norm.bias": RNG.normal(size=WIDTH).astype(np.float32),
    "head.weight": RNG.normal(size=(WORDS, WIDTH)).astype(np.float32),
}
LINES = (
    "pnnx.Input in 0 1 a #a=(1,3)i64",
    (
        f"nn.Embedding embed 1 1 a b embedding_dim={WIDTH} num_embeddings={WORDS} sparse=False "
        f"@weight=({WORDS},{WIDTH})f32 #b=(1,3,{WIDTH})f32"
    ),
    (
        f"nn.Linear branch 1 1 b c bias=False in_features={WIDTH} out_features={WIDTH} "
        f"@weight=({WIDTH},{WIDTH})f32 #c=(1,3,{WIDTH})f32"
    ),
    (
        f"pnnx.Expression sum 2 1 c b d expr=add(@0,@1) #d=(1,3,{WIDTH})f32 "
        f"#c=(1,3,{WIDTH})f32 #b=(1,3,{WIDTH})f32"
    ),
)
END = (
    (
        f"nn.LayerNorm norm 1 1 d e elementwise_affine=True eps=1.000000e-05 "
        f"normalized_shape=({WIDTH}) @bias=({WIDTH})f32 @weight=({WIDTH})f32 "
        f"#e=(1,3,{WIDTH})f32"
    ),
    (
        f"nn.Linear head 1 1 e f bias=False in_features={WIDTH} out_features={WORDS} "
        f"@weight=({WORDS},{WIDTH})f32 #f=(1,3,{WORDS})f32"
    ),
    "pnnx.Output out 1 0 f",
)
NUMBERS = np.array([[5, 17, 900]])


@pytest.fixture
def session(make_pair):
    found = engine.Session(engine.load(make_pair(*LINES, *END, weights=WEIGHTS)))
    found.feed([NUMBERS])
    found.run()
    return found


def test_the_likeliest_token_after_each_layer(session):
    before = WEIGHTS["embed.weight"][NUMBERS[0, 1]].astype(np.float64)
    after = before + WEIGHTS["branch.weight"] @ before
    expected = []
    for stream in (before, after):
        normal = (stream - stream.mean()) / np.sqrt(stream.var() + 1e-5)
        normal = normal * WEIGHTS["norm.weight"] + WEIGHTS["norm.bias"]
        expected.append(int((WEIGHTS["head.weight"] @ normal).argmax()))
    end, stream = find_lens(session.graph)
    assert [each.name for each in end] == ["norm", "head"]
    assert [each.name for each in stream] == ["b", "d"]
    options = {"lens": "on", "position": 1, "top": 2}
    result = read_output(session, "tokens", options=options).result
    assert [row.entry for row in result.rows[2:]] == expected
    assert result.rows[0].entry == expected[-1]  # the last layer says what the model says
    assert [row.detail for row in result.rows[2:]] == ["after operand b", "after operand d"]
    assert "the last 2 rows" in result.note
    assert len(read_output(session, "tokens", options={"top": 2}).result.rows) == 2


def test_a_model_without_a_norm_has_no_lens(make_pair):
    head = END[1].replace(" e f ", " d f ")
    found = engine.Session(engine.load(make_pair(*LINES, head, END[2], weights=WEIGHTS)))
    assert find_lens(found.graph) == ((), ())
    found.feed([NUMBERS])
    found.run()
    result = read_output(found, "tokens", options={"lens": "on"}).result
    assert "there is no logit lens" in result.note
