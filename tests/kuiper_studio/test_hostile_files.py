"""Files that did harm, in the window: it runs them, or says one sentence, and goes on."""

from __future__ import annotations

import logging

import pytest
from PySide6.QtGui import QAction

from engine.inputs import InputSource
from kuiper_studio.session import RunState

pytestmark = pytest.mark.shared

# The operator that fails, by folder.
FAILING = {
    "list_operand_cat": "op2",
    "native_sizes/heap": "op2",
    "native_sizes/deconv_crop": "op",
    "native_sizes/deconv_crop2": "op",
    "blow_up/tuple": "c13",
    "blow_up/cat": "c16",
    "special_numbers/empty_pool": "op",
}
RUNNING = [
    "list_operand_cat/valid", "array_headers", "float64_statistics",
    "native_sizes/dil_wrap", "native_sizes/heap_30", "native_sizes/heap_31",
    "native_sizes/heap_w", "native_sizes/pad33", "native_sizes/pad64", "native_sizes/pad_100k",
    "native_sizes/pad_4gb", "native_sizes/pad_one", "native_sizes/pad_wrap",
    "native_sizes/stride", "native_sizes/stride30", "native_sizes/stride31",
    "native_sizes/stride32", "native_sizes/stride33", "blow_up/maxpool", "blow_up/lrn",
    "special_numbers/hardtanh_nan", "special_numbers/selfcheck_nan", "special_numbers/sin",
]  # fmt: skip
MOST_SELECTED = 6


@pytest.mark.parametrize("folder", [*FAILING, *RUNNING])
def test_it_runs_or_says_why(qtbot, shared, open_window, folder, caplog):
    window = open_window()
    session = window.session
    session.memory.set_bound(64 << 20)
    place = shared / "hostile" / folder
    if folder != "float64_statistics":
        source = InputSource("random")
        if (place / "x.npy").is_file():
            source = InputSource("npy", path=place / "x.npy")
        session.next_model.set_sources([source])
    with caplog.at_level(logging.ERROR):
        window.opening.open_model(place / "m.pnnx.param")
        qtbot.waitUntil(lambda: session.graph is not None and not session.busy, timeout=20_000)
        for _ in range(2):  # with the second pass operators may be computed together
            window.findChild(QAction, "debug.continue").trigger()
            qtbot.waitUntil(lambda: not session.busy, timeout=60_000)
            if folder in FAILING:
                assert session.failure is not None
                assert FAILING[folder] in session.failure.title + session.failure.reason
                assert session.state is RunState.FAILED
            else:
                assert session.failure is None
                assert session.state is RunState.FINISHED
            for operator in [*session.graph.operators][-MOST_SELECTED:]:
                session.select(operator.name)
                qtbot.wait(20)
            session.restart()
            qtbot.waitUntil(lambda: not session.busy, timeout=20_000)
    assert not caplog.records
