"""Kronecker products, traces, products of vectors, and quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from provenance.campaign import Findings, try_operator

import engine
from engine.provenance.records import Kind

RNG = np.random.default_rng(31)


@pytest.fixture
def run(make_pair):
    """Run an operator on arrays x0, x1, …"""

    def run(line, *shapes, values=None):
        arrays = values or [RNG.normal(size=shape).astype(np.float32) for shape in shapes]
        names = [f"x{at}" for at in range(len(arrays))]
        kind, _, options = line.partition(" ")
        path = make_pair(
            *[
                f"pnnx.Input in{at} 0 1 {name} #{name}=({','.join(map(str, each.shape))})f32"
                for at, (name, each) in enumerate(zip(names, arrays, strict=True))
            ],
            f"{kind} op {len(arrays)} 1 {' '.join(names)} y {options}",
            "pnnx.Output out 1 0 y",
        )
        session = engine.Session(engine.load(path), "numpy")
        session.feed(arrays)
        session.run()
        return session

    return run


def check(session):
    findings = Findings()
    operator = session.graph.operator("op")
    try_operator("op", session, operator, findings, np.random.default_rng(4), 12)
    assert findings.wrong == []
    assert findings.unexplained.total() == findings.unfollowed.total() == 0
    assert findings.explained == 12
    assert findings.slopes


@pytest.mark.parametrize(
    "shapes", [((2, 3), (4, 2)), ((3,), (2, 5)), ((2, 2, 3), (2,)), ((3,), (4,))]
)
def test_kronecker_products(run, shapes):
    check(run("torch.kron $input=x0 $other=x1", *shapes))


def test_the_pair_of_a_kronecker_product(run):
    session = run("torch.kron $input=x0 $other=x1", (2, 3), (4, 2))
    found = engine.explain_element(session, "y", (6, 3))  # 6 = 1 * 4 + 2, 3 = 1 * 2 + 1
    one, other = found.breakdown.terms.factors
    assert (one.indices.tolist(), other.indices.tolist()) == ([[1, 1]], [[2, 1]])
    regions = {each.operand: each.slices for each in found.sources}
    assert regions == {
        "x0": (slice(1, 2), slice(1, 2)), "x1": (slice(2, 3), slice(1, 2)),
    }  # fmt: skip


def test_a_trace_is_the_sum_of_the_diagonal(run):
    session = run("torch.trace $input=x0", (4, 4))
    check(session)
    terms = engine.explain_element(session, "y", ()).breakdown.terms
    assert terms.products.tolist() == pytest.approx(np.diag(session.value("x0")).tolist())


@pytest.mark.parametrize(
    ("dim", "shapes"), [(-1, ((2, 5), (2, 5))), (0, ((4, 3), (4, 3))), (1, ((3,), (2, 4, 3)))]
)
def test_products_of_vectors(run, dim, shapes):
    check(run(f"torch.linalg.vecdot dim={dim} $x=x0 $y=x1", *shapes))


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("options", ["dim=1 keepdim=False", "dim=0 keepdim=True", "dim=None"])
def test_quantiles(run, method, options):
    check(run(f"torch.quantile q=0.3 interpolation={method} {options} $input=x0", (5, 8)))


def test_a_quantile_lies_between_two_elements(run):
    row = np.array([[4, 1, np.nan, 3, 2]], np.float32)
    line = "torch.nanquantile q=0.75 dim=1 keepdim=False interpolation=linear $input=x0"
    session = run(line, values=[row])
    found = engine.explain_element(session, "y", (0,))
    # Four numbers have the ranks 0 to 3; 0.75 * 3 lies between 3 and 4, a quarter of the way.
    assert found.kind is Kind.SUM
    assert found.breakdown.terms.factors[0].indices.tolist() == [[0, 3], [0, 0]]
    assert found.breakdown.terms.products.tolist() == pytest.approx([0.75 * 3, 0.25 * 4])
    line = line.replace("nanq", "q")
    session = run(line, values=[row])
    assert engine.explain_element(session, "y", (0,)).reason == "An element is NaN."


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(
    ("left", "shapes"),
    [
        (True, ((2, 4, 4), (2, 4, 3))),
        (False, ((4, 4), (2, 3, 4))),
        (True, ((2, 4, 4), (1, 4, 1))),
    ],
)
def test_triangular_equations(run, upper, left, shapes):
    matrix, other = (RNG.uniform(-0.5, 0.5, shape).astype(np.float32) for shape in shapes)
    matrix += 2 * np.eye(4, dtype=np.float32)
    options = f"upper={upper} left={left} unitriangular=False"
    check(
        run(
            f"torch.linalg.solve_triangular {options} $input=x0 $other=x1",
            values=[matrix, other],
        )
    )


def test_the_last_of_triangular_equations(run):
    """2x = 4 and x + 4y = 10, so y = 10/4 - 4/8; the first needs no second one."""
    session = run(
        "torch.linalg.solve_triangular upper=False left=True unitriangular=False "
        "$input=x0 $other=x1",
        values=[np.array([[2, 9], [1, 4]], np.float32), np.array([[4], [10]], np.float32)],
    )
    found = engine.explain_element(session, "y", (1, 0))
    inverse, elements = found.breakdown.terms.factors
    assert inverse.values.tolist() == [-0.125, 0.25]
    assert elements.indices.tolist() == [[0, 0], [1, 0]]
    assert found.value == 2.0
    first = engine.explain_element(session, "y", (0, 0))
    assert {each.operand: each.slices for each in first.sources} == {
        "x0": (slice(0, 1), slice(0, 1)), "x1": (slice(0, 1), slice(0, 1)),
    }  # fmt: skip
