"""What the graph is coloured by, chosen and read as a user does."""

from __future__ import annotations

import html

import numpy as np
import pytest
from driving import choose
from PySide6.QtCore import QPointF
from PySide6.QtGui import QAction, QColor
from PySide6.QtWidgets import QFileDialog, QLabel, QMenu

from kuiper_studio.graph_view.colors import ink_on, level_colors
from kuiper_studio.graph_view.render import render_graph
from kuiper_studio.item_models.operators import OperatorColumn
from kuiper_studio.item_models.overlays import NO_LEVEL
from kuiper_studio.theme import Scheme, Theme

INPUT = np.array([-2, 0, 0, 1000], np.float32)
# log gives NaN, -Inf, -Inf and 6.9; over gives 1/0 = Inf of the three zeros of relu.
NET = (
    "pnnx.Input in 0 1 0 #0=(4)f32",
    "F.relu relu 1 1 0 1 #1=(4)f32",
    "pnnx.Expression small 1 1 1 2 expr=mul(@0,0.001) #2=(4)f32",
    "pnnx.Expression log 1 1 0 3 expr=log(@0) #3=(4)f32",
    "pnnx.Expression over 1 1 1 4 expr=div(1,@0) #4=(4)f32",
    "nn.Linear fc 1 1 2 5 bias=False in_features=4 out_features=2 @weight=(2,4)f32 #5=(2)f32",
    "pnnx.Output out 3 0 3 4 5",
)
MOST = {"dark": "#fde725", "light": "#440154"}  # the end of viridis that stands out


@pytest.fixture
def model(make_pair):
    return make_pair(*NET, weights={"fc.weight": np.ones((2, 4), np.float32)})


@pytest.fixture
def window(open_window, model):
    window = open_window(model, [INPUT])
    assert window.session.wait_idle(10)
    return window


@pytest.fixture
def ran(window):
    window.session.resume()
    assert window.session.wait_idle(10)
    return window


def settled(qtbot, window, known=()):
    """Wait until what is measured has come."""
    graph = window.session.graph
    indices = [graph.operator(name).index for name in known]
    qtbot.waitUntil(
        lambda: bool((window.graph_view.overlay.levels[indices] != NO_LEVEL).all()),
        timeout=10_000,
    )


def values(window):
    """Texts of the operators' values, by name."""
    overlay = window.graph_view.overlay
    return {each.name: overlay.text(each.index) for each in window.session.graph.operators}


def fill(window, name):
    """Colour of a box, below its texts."""
    canvas = window.graph_view.canvas
    canvas.viewport.fit()
    rect = canvas.box_rect(name)
    point = rect.center() + QPointF(0.0, 0.435 * rect.height())
    return canvas.grab().toImage().pixelColor(point.toPoint()).name()


def tip(window, name):
    canvas = window.graph_view.canvas
    return canvas.tip_at(canvas.box_rect(name).center()).splitlines()


def notices(window):
    return [entry.text for entry in window.session.workspace.log_entries]


@pytest.fixture
def choose_file(monkeypatch):
    def choose(path):
        monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))

    return choose


def test_costs_need_no_run(window):
    plain = fill(window, "relu")
    choose(window, "view.colorByMacs")
    assert values(window) == {
        "in": "none", "relu": "none", "small": "none", "log": "none", "over": "none",
        "fc": "8 MAC", "out": "none",
    }  # fmt: skip
    assert fill(window, "fc") == MOST["dark"]
    assert fill(window, "relu") == plain
    assert "Multiply-accumulates: 8 MAC" in tip(window, "fc")

    choose(window, "view.colorByWeights")
    assert values(window)["fc"] == "32 B"
    choose(window, "view.colorByMemory")
    assert values(window) == {
        "in": "16 B", "relu": "16 B", "small": "16 B", "log": "16 B", "over": "16 B",
        "fc": "8 B", "out": "none",
    }  # fmt: skip
    assert window.graph_view.overlay.ends == ("0 B", "8 B", "16 B")

    choose(window, "view.colorByFamily")
    assert window.graph_view.overlay is None
    assert fill(window, "fc") == plain


def column(panel):
    """Texts of the list in the column of what operators are coloured by, row by row."""
    rows = range(panel.rows.rowCount())
    return [panel.rows.index(row, OperatorColumn.VALUE).data().strip() for row in rows]


def test_another_selection_changes_no_colour_in_the_list(ran, qtbot):
    choose(ran, "view.colorByTime")
    panel = ran.operators_panel
    before = column(panel)
    assert all(before[1:6])
    with qtbot.assertNotEmitted(panel.model.values_changed):
        for name in ("fc", "relu", "log"):
            ran.session.select(name)
    assert column(panel) == before
    with qtbot.waitSignal(panel.model.values_changed):
        ran.session.restart()
    assert ran.session.wait_idle(10)
    assert not any(column(panel))


def test_the_list_paints_and_sorts_new_values_under_a_filter(ran, qtbot):
    panel = ran.operators_panel
    panel.filter_box.setText("type:*")
    choose(ran, "view.colorByWeights")
    assert column(panel) == ["", "", "", "", "", "32 B", ""]
    panel.sort_by(OperatorColumn.VALUE)
    assert column(panel)[0] == "32 B"
    before = panel.table.grab().toImage()
    choose(ran, "view.colorByMacs")
    assert column(panel) == ["8", "", "", "", "", "", ""]
    assert panel.table.grab().toImage() != before
    choose(ran, "view.colorByMemory")  # `fc` gives two numbers, the others four
    assert column(panel) == ["8 B", "16 B", "16 B", "16 B", "16 B", "16 B", ""]
    assert panel.rows.index(0, OperatorColumn.NAME).data() == "fc"


def test_times_are_those_of_the_run(window):
    choose(window, "view.colorByTime")
    assert window.graph_view.overlay.range_text == "nothing has run yet"
    window.session.resume()
    assert window.session.wait_idle(10)
    overlay, session = window.graph_view.overlay, window.session
    records = {name: session.record(name) for name in ("relu", "small", "log", "over", "fc")}
    slowest = max(records, key=lambda name: records[name].seconds)
    assert overlay.values[records["fc"].index] == records["fc"].seconds
    assert fill(window, slowest) == MOST["dark"]
    choose(window, "debug.restart")
    assert window.session.wait_idle(10)
    assert window.graph_view.overlay.is_empty


def test_values_are_measured_when_they_are_wanted(qtbot, ran):
    choose(ran, "view.colorByZeros")
    settled(qtbot, ran, ["in", "relu", "small"])
    shares = values(ran)
    assert (shares["in"], shares["relu"], shares["small"]) == ("50 %", "75 %", "75 %")
    assert ran.graph_view.overlay.ends == ("0 %", "50 %", "100 %")

    choose(ran, "view.colorByLargest")
    found = values(ran)
    assert (found["in"], found["relu"], found["small"]) == ("1000", "1000", "1")
    assert (found["log"], found["over"]) == ("+Inf", "+Inf")
    overlay = ran.graph_view.overlay
    assert overlay.scale.is_log
    # From 1 to 1000, with infinite ones above; the middle is the geometric mean.
    assert overlay.ends == ("1", "31.6", "≥ 1000")
    assert fill(ran, "over") == fill(ran, "in") == MOST["dark"]

    choose(ran, "view.colorByNonfinite")
    found = values(ran)
    assert (found["relu"], found["log"], found["over"]) == ("finite", "1 NaN", "3 Inf")
    theme = ran.theme
    assert fill(ran, "log") == theme.color("nan").name()
    assert fill(ran, "over") == theme.color("pinf").name()
    description = ran.graph_view.canvas.accessibleDescription()
    assert "Coloured by NaN and Inf: finite, Inf, NaN." in description


def test_going_to_the_most_and_to_the_next(qtbot, ran):
    assert not ran.findChild(QAction, "view.mostValue").isEnabled()
    choose(ran, "view.colorByNonfinite")
    settled(qtbot, ran, ["log", "over"])
    choose(ran, "view.mostValue")
    assert ran.session.selected == "over"
    assert notices(ran)[-1] == "NaN and Inf: 3 Inf, number 1 of 2"
    choose(ran, "view.nextValue")
    assert ran.session.selected == "log"
    choose(ran, "view.nextValue")  # what is finite is passed over
    assert ran.session.selected == "over"
    ran.session.select("relu")
    choose(ran, "view.nextValue")
    assert ran.session.selected == "over"

    choose(ran, "view.colorByError")
    choose(ran, "view.mostValue")
    assert notices(ran)[-1] == "Difference: nothing is compared yet"


def test_the_difference_from_a_reference(ran, tmp_path, wait_for_turns):
    path = tmp_path / "reference.npz"
    # relu is off by 500 of 1000.
    np.savez(path, **{"0": INPUT, "1": np.array([0, 0, 500, 1000], np.float32)})
    choose(ran, "view.colorByError")
    ran.session.studies.compare(path)
    assert ran.session.wait_idle(20)
    wait_for_turns()  # then the graph is painted again
    found = values(ran)
    assert (found["in"], found["relu"], found["fc"]) == ("0", "0.5", "not compared")
    assert fill(ran, "relu") == MOST["dark"]
    ran.actions_by_id["analyse.clear"].trigger()
    assert ran.graph_view.overlay.is_empty


def test_own_numbers_of_a_file(window, tmp_path, choose_file):
    path = tmp_path / "mine.csv"
    path.write_text("name,watts\nrelu,-2\nfc,6\ngone,1\n")
    choose_file(path)
    choose(window, "view.colorByOwn")
    overlay = window.graph_view.overlay
    assert (overlay.title, overlay.ends) == ("mine.csv", ("−2", "2", "6"))
    assert values(window)["relu"] == "−2"
    assert values(window)["log"] == "no number"
    assert overlay.levels.tolist() == [-1, 0, -1, -1, -1, 255, -1]
    assert fill(window, "fc") == MOST["dark"]
    assert notices(window)[-1] == "2 numbers from mine.csv; 1 name of no operator: gone"

    choose(window, "view.colorByFamily")
    choose_file("")  # the user cancels
    choose(window, "view.colorByOwn")
    assert window.graph_view.overlay is None
    assert window.findChild(QAction, "view.colorByFamily").isChecked()


def test_wrong_numbers_change_nothing_and_are_told(window, tmp_path, choose_file):
    path = tmp_path / "mine.csv"
    path.write_text("relu,1\nfc,lots\n")
    choose(window, "view.colorByMacs")
    choose_file(path)
    choose(window, "view.colorByOwn")
    assert window.graph_view.overlay.title == "Multiply-accumulates"
    assert window.findChild(QAction, "view.colorByMacs").isChecked()
    shown = " ".join(label.text() for label in window.banner.findChildren(QLabel))
    told = "mine.csv, line 2: the value of 'fc' is 'lots', not a number"
    assert told in html.unescape(shown)


def test_own_numbers_go_with_their_model(window, tmp_path, choose_file, make_pair):
    path = tmp_path / "mine.csv"
    path.write_text("relu,1\n")
    choose_file(path)
    choose(window, "view.colorByOwn")
    window.session.open(make_pair(*NET[:2], "pnnx.Output out 1 0 1", name="other"))
    assert window.session.wait_idle(10)
    assert window.graph_view.overlay is None
    assert window.findChild(QAction, "view.colorByFamily").isChecked()


def test_the_choice_is_remembered_and_in_both_menus(window, open_window, model):
    choose(window, "view.colorByMemory")
    window.close()
    again = open_window(model, [INPUT])
    assert again.session.wait_idle(10)
    assert again.findChild(QAction, "view.colorByMemory").isChecked()
    assert again.graph_view.overlay.title == "Memory of outputs"
    menus = again.findChildren(QMenu, "overlaying.fill_menu")
    menus[0].aboutToShow.emit()
    texts = [action.text() for action in menus[0].actions() if not action.isSeparator()]
    assert texts[0] == "&Family"
    assert "Own n&umbers…" in texts


def test_the_legend_has_the_numbers_and_is_hidden(window):
    def foot():
        canvas = window.graph_view.canvas
        image = canvas.grab().toImage()
        rows = range(round(canvas.scene_rect().bottom()), canvas.height())
        return {image.pixelColor(x, y).name() for y in rows for x in range(canvas.width() // 2)}

    assert MOST["dark"] not in foot()
    choose(window, "view.colorByMemory")
    assert MOST["dark"] in foot()
    choose(window, "view.legend")
    assert MOST["dark"] not in foot()


def test_an_exported_picture_has_the_colours(window, tmp_path):
    choose(window, "view.colorByMacs")
    path = tmp_path / "graph.svg"
    render_graph(window.session.graph, path, window.theme, session=window.session)
    assert MOST["dark"] in path.read_text()
    path = tmp_path / "model.svg"
    render_graph(window.session.graph, path, window.theme)  # the model alone has no values
    assert MOST["dark"] not in path.read_text()


def luminance(color):
    """Relative luminance by WCAG 2."""
    parts = np.array(QColor(color).getRgbF()[:3])
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def ratio(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [Scheme.DARK, Scheme.LIGHT])
def test_colours_are_seen_and_texts_on_them_read(window, scheme):
    theme = Theme(scheme)
    choose(window, "view.colorByMemory")
    colors = level_colors(theme, window.graph_view.overlay)
    scale = [QColor.fromRgba(color) for color in colors[:256].tolist()]
    assert scale[-1].name() == MOST[scheme.value]
    lights = [luminance(color) for color in scale]
    steps = np.diff(lights) * (1 if scheme is Scheme.DARK else -1)
    assert steps.min() > -1e-3  # one way only, up to rounding
    for color in scale:
        assert ratio(color, theme.color("base")) >= 3
        assert ratio(color, theme.color("panel")) >= 3
        assert ratio(color, ink_on(color)) >= 4.5
    for token in ("nan", "pinf", "ctl"):
        assert ratio(theme.color(token), ink_on(theme.color(token))) >= 4.5


@pytest.mark.parametrize("zoom", [0.5, 0.2])
def test_boxes_have_their_colour_at_any_zoom(window, zoom):
    choose(window, "view.colorByMacs")
    canvas = window.graph_view.canvas
    while canvas.zoom > zoom:
        window.graph_view.zoom_out()
    rect = canvas.box_rect("fc")
    image = canvas.grab().toImage()
    point = rect.center() + QPointF(0.0, 0.3 * rect.height())
    assert image.pixelColor(point.toPoint()).name() == MOST["dark"]
