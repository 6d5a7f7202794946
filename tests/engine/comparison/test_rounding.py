"""Which rows differ by rounding only; the distances are put in by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from array_reference import align_with, reference_of
from engine.comparison import Status
from engine.comparison.measures import Measures
from engine.comparison.rounding import Rounding

TOLERANCE = 1e-4


@pytest.fixture
def align(make_session, tensors):
    """A function that compares the network with changed tensors of the reference."""

    def make(**changed):
        session = make_session()
        session.run()
        arrays = {f"x{key}": array for key, array in {**tensors, **changed}.items()}
        aligned = align_with(session, reference_of(arrays, []))
        assert aligned.tolerances.float32 == TOLERANCE
        return aligned

    return make


def put(aligned, operand, **changes):
    aligned.rows[operand] = replace(aligned.rows[operand], **changes)


def far(relative):
    return Measures(count=1, max_abs=relative, relative=relative)


class TestMeasuringAgain:
    """On the reference's inputs the last layer differs by 0.001 of the largest element."""

    @pytest.fixture
    def aligned(self, align, tensors):
        last = tensors["7"].copy()
        last[0, 3] += 0.001 * np.abs(last).max()
        return align(**{"7": last})

    @pytest.mark.parametrize(
        ("bound", "born"),
        [
            pytest.param(0.5, 0.001, id="the bound was too large"),
            pytest.param(2e-5, 2e-5, id="the bound says that it is less"),
        ],
    )
    def test_the_smaller_one_counts(self, aligned, bound, born):
        put(aligned, "7", born=bound, measures=far(0.6))
        Rounding(aligned).measure_born()
        assert aligned.rows["7"].born == pytest.approx(born, rel=0.01)
        assert aligned.rows["7"].inherited == pytest.approx(0.6 - born, rel=0.01)

    @pytest.mark.parametrize(
        "changes",
        [{"born": 1e-6}, {"born": None}, {"born": 0.5, "status": Status.NOT_COMPARED}],
        ids=["rounding", "not measured", "not compared"],
    )
    def test_what_is_left_as_it_is(self, aligned, changes):
        put(aligned, "7", **changes)
        before = aligned.rows["7"]
        Rounding(aligned).measure_born()
        assert aligned.rows["7"] == before


class TestAmplification:
    """The network makes a large difference of rounding, if nothing else can have made it."""

    @pytest.fixture
    def aligned(self, align):
        aligned = align()
        put(aligned, "5", status=Status.INHERITED, measures=far(0.01), born=0.0)
        return aligned

    def test_it_is_rounding_if_all_else_agrees(self, aligned):
        assert Rounding(aligned).excuse_amplified()
        row = aligned.rows["5"]
        assert row.status is Status.ROUNDING
        assert row.reason == "all operators upstream agree: the network amplifies rounding"

    @pytest.mark.parametrize(
        ("measures", "excuses"),
        [
            pytest.param(far(2 * TOLERANCE), False, id="apart"),
            pytest.param(far(TOLERANCE), True, id="within the tolerance"),
            pytest.param(None, False, id="nothing is known of it"),
        ],
    )
    def test_not_beside_what_cannot_be_compared(self, aligned, measures, excuses):
        put(aligned, "3", status=Status.NOT_COMPARED, measures=measures)
        assert Rounding(aligned).excuse_amplified() is excuses
        assert (aligned.rows["5"].status is Status.ROUNDING) is excuses

    @pytest.mark.parametrize(("born", "excuses"), [(0.9e-5, True), (1.1e-5, False)])
    def test_not_beside_an_operator_that_errs(self, aligned, born, excuses):
        """A tenth of the tolerance is more than rounding."""
        put(aligned, "3", born=born)
        assert Rounding(aligned).excuse_amplified() is excuses


class TestAccumulation:
    """Rounding adds up to ten times the tolerance."""

    @pytest.mark.parametrize(("relative", "excused"), [(9.9e-4, True), (1.01e-3, False)])
    def test_how_far(self, align, relative, excused):
        aligned = align()
        put(aligned, "5", status=Status.INHERITED, measures=far(relative))
        Rounding(aligned).excuse_accumulated()
        assert (aligned.rows["5"].status is Status.ROUNDING) is excused

    @pytest.mark.parametrize("changes", [{"status": Status.ORIGIN}, {"born": 1.1e-5}])
    def test_not_beside_a_fault(self, align, changes):
        aligned = align()
        put(aligned, "5", status=Status.INHERITED, measures=far(2e-4))
        put(aligned, "3", **changes)
        Rounding(aligned).excuse_accumulated()
        assert aligned.rows["5"].status is Status.INHERITED
