"""Real results of Fourier transforms: their terms, regions and slopes."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
from provenance.campaign import Findings, try_operator

import engine
from engine.provenance.records import Kind

RNG = np.random.default_rng(21)
TO_COMPLEX = "torch.fft.fft c 1 1 x z dim=0 n=None norm=backward"
HANN = np.hanning(10)[1:-1].astype(np.float32)


@pytest.fixture
def run(make_pair):
    """Run operators on an input x; the last one is called op and gives y."""

    def run(shape, *lines, **weights):
        sizes = ",".join(map(str, shape))
        given = [
            f"pnnx.Attribute {name} 0 1 {name} @data=({len(each)})f32"
            for name, each in weights.items()
        ]
        path = make_pair(
            f"pnnx.Input in 0 1 x #x=({sizes})f32", *given, *lines, "pnnx.Output out 1 0 y",
            weights={f"{name}.data": each for name, each in weights.items()},
        )  # fmt: skip
        session = engine.Session(engine.load(path), "numpy")
        session.feed([RNG.normal(size=shape).astype(np.float32)])
        session.run()
        return session

    return run


def check(session, *, slopes):
    findings = Findings()
    operator = session.graph.operator("op")
    try_operator("op", session, operator, findings, np.random.default_rng(4), 12)
    assert findings.wrong == []
    assert findings.unexplained.total() == 0
    assert findings.explained == 12
    assert (findings.slopes > 0) is slopes


def test_terms_of_an_inverse_transform(run):
    """By the definition: a frequency and its mirror have the same real part."""
    session = run((4,), "torch.fft.irfft op 1 1 x y dim=-1 n=None norm=backward $input=x")
    x, place = session.value("x").astype(float), 4
    found = engine.explain_element(session, "y", (place,))
    assert found.kind is Kind.SUM
    expected = [
        times * x[at] * math.cos(2 * math.pi * at * place / 6) / 6
        for at, times in enumerate((1, 2, 2, 1))
    ]
    terms = found.breakdown.terms
    assert terms.products.tolist() == pytest.approx(expected)
    assert terms.factors[0].is_operand
    assert terms.factors[0].indices.tolist() == [[0], [1], [2], [3]]
    assert terms.axes == ("dim 0",)


def test_parts_of_complex_numbers_are_terms(run):
    session = run((5, 3), TO_COMPLEX, "torch.fft.hfft op 1 1 z y dim=0 n=7 norm=ortho $input=z")
    z, place = session.value("z").astype(complex), (2, 1)
    terms = engine.explain_element(session, "y", place).breakdown.terms
    assert terms.axes == ("part", "dim 0")
    assert terms.shape == (2, 4)  # 7 points have 4 frequencies
    products = [
        (1 if at == 0 else 2) * z[at, 1] * cmath.exp(-2j * math.pi * at * 2 / 7) / math.sqrt(7)
        for at in range(4)
    ]
    both = terms.products.reshape(2, 4).sum(axis=0)
    assert both.tolist() == pytest.approx([each.real for each in products], rel=1e-5)
    assert terms.factors[0].name == "Re, Im z"
    assert not terms.factors[0].is_operand


@pytest.mark.parametrize(
    ("shape", "line"),
    [
        ((5,), "torch.fft.irfft op 1 1 x y dim=0 n=None norm=forward $input=x"),
        ((2, 5), "torch.fft.irfft op 1 1 x y dim=1 n=11 norm=ortho $input=x"),
        ((2, 5), "torch.fft.hfft op 1 1 x y dim=1 n=5 norm=forward $input=x"),
        ((3, 4, 5), "torch.fft.irfft2 op 1 1 x y dim=(2,0) norm=backward s=None $input=x"),
        ((3, 4, 5), "torch.fft.hfft2 op 1 1 x y dim=(0,1) norm=ortho s=(2,9) $input=x"),
        ((3, 4, 5), "torch.fft.irfftn op 1 1 x y dim=None norm=None s=(6,4) $input=x"),
        ((3, 4, 5), "torch.fft.hfftn op 1 1 x y dim=None norm=backward s=None $input=x"),
    ],
)
def test_transforms_of_real_numbers(run, shape, line):
    check(run(shape, line), slopes=True)


@pytest.mark.parametrize("norm", ["backward", "forward", "ortho"])
def test_transforms_of_complex_numbers(run, norm):
    check(
        run(
            (6, 5), TO_COMPLEX,
            f"torch.fft.irfft2 op 1 1 z y dim=(0,1) norm={norm} s=None $input=z",
        ),
        slopes=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        "center=True hop_length=3 normalized=True",
        "center=False hop_length=2 normalized=False",
        "center=True hop_length=None normalized=False",
    ],
)
def test_signals_of_their_transforms(run, options):
    common = f"n_fft=8 win_length=8 onesided=True {options}"
    session = run(
        (2, 31),
        f"torch.stft s 2 1 x w z {common} pad_mode=reflect return_complex=True "
        "$input=x $window=w",
        f"torch.istft op 2 1 z w y {common} length=None return_complex=False "
        "$input=z $window=w",
        w=HANN,
    )
    check(session, slopes=False)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
@pytest.mark.parametrize(
    "options",
    [
        "center=True pad=0 pad_mode=reflect normalized=False onesided=True",
        "center=True pad=3 pad_mode=constant normalized=window onesided=True",
        "center=False pad=2 pad_mode=reflect normalized=frame_length onesided=False",
        "center=True pad=0 pad_mode=circular normalized=True onesided=True",
    ],
)
def test_magnitudes_of_frequencies(run, options, power):
    session = run(
        (2, 29),
        f"torchaudio.functional.spectrogram op 2 1 x w y {options} power={power} n_fft=10 "
        "hop_length=3 win_length=8 $waveform=x $window=w",
        w=HANN,
    )
    check(session, slopes=True)


def test_a_magnitude_is_the_sum_of_parts_in_its_direction(run):
    session = run(
        (6,),
        "torchaudio.functional.spectrogram op 2 1 x w y pad=0 n_fft=4 hop_length=2 "
        "win_length=4 power=2.0 normalized=False center=False pad_mode=reflect onesided=True "
        "$waveform=x $window=w",
        w=np.array([1, 2, 3, 4], np.float32),
    )
    x = session.value("x").astype(float)
    # The second piece, frequency 1: i to the minus j.
    parts = [x[2], -2j * x[3], -3 * x[4], 4j * x[5]]
    total = sum(parts)
    found = engine.explain_element(session, "y", (1, 1))
    expected = [(part * total.conjugate()).real for part in parts]
    assert found.breakdown.terms.products.tolist() == pytest.approx(expected)
    assert found.value == pytest.approx(abs(total) ** 2, rel=1e-5)
