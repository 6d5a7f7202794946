from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace

import pytest
from on_screen import texts
from PySide6.QtCore import QMimeData, QPoint, QPointF, QSettings, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QPushButton

from kuiper_studio.panels.dropping import dropped_model
from kuiper_studio.panels.recent_row import RecentRow
from kuiper_studio.panels.recents import Recents
from kuiper_studio.panels.start_page import StartPage
from kuiper_studio.session import Failure

DIGITS = SimpleNamespace(name="digits", title="Handwritten digits", description="Reads digits.")
UNET = SimpleNamespace(name="unet", title="U-Net", description="Finds shapes.")


@pytest.fixture
def recents(qapp, tmp_path) -> Recents:
    settings = QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat)
    return Recents(settings, lambda: datetime(2025, 6, 13, 12, 0))


@pytest.fixture
def page(qtbot, theme, recents) -> StartPage:
    made = StartPage(theme, (DIGITS, UNET), recents)
    qtbot.addWidget(made)
    made.resize(760, 800)
    made.show()
    return made


def rows(page) -> list[RecentRow]:
    QApplication.processEvents()  # which shows new ones
    return [row for row in page.findChildren(RecentRow) if row.isVisible()]


def button(page, name: str) -> QPushButton:
    return page.findChild(QPushButton, name)


def test_open(qtbot, page) -> None:
    with qtbot.waitSignal(page.open_requested):
        button(page, "startOpen").click()


def test_enter_opens_the_sample(qtbot, page) -> None:
    with qtbot.waitSignal(page.sample_requested) as heard:
        qtbot.keyClick(page, Qt.Key_Return)
    assert heard.args == [DIGITS]


def test_other_samples(qtbot, page) -> None:
    with qtbot.waitSignal(page.sample_requested) as heard:
        button(page, "sample-unet").click()
    assert heard.args == [UNET]


def test_without_samples(qtbot, theme, recents) -> None:
    page = StartPage(theme, (), recents)
    qtbot.addWidget(page)
    page.show()
    assert page.sample_button is None
    with qtbot.assertNotEmitted(page.sample_requested):
        qtbot.keyClick(page, Qt.Key_Return)


def test_recents(qtbot, page, recents, tmp_path) -> None:
    assert not button(page, "startClear").isVisible()
    here = tmp_path / "here.pnnx.param"
    here.touch()
    recents.add("/nowhere/gone.pnnx.param", 9)
    recents.add(here, 51)
    assert [row.missing for row in rows(page)] == [False, True]
    assert "51 operators, today 12:00" in rows(page)[0].accessibleName()
    assert "file not found" in rows(page)[1].accessibleName()
    with qtbot.waitSignal(page.path_requested) as heard:
        rows(page)[0].click()
    assert heard.args == [str(here)]
    with qtbot.assertNotEmitted(page.path_requested):
        rows(page)[1].click()


def test_enter_on_a_recent_opens_it(qtbot, page, recents, tmp_path) -> None:
    here = tmp_path / "here.pnnx.param"
    here.touch()
    recents.add(here, 51)
    rows(page)[0].setFocus()
    with qtbot.waitSignal(page.path_requested):
        qtbot.keyClick(rows(page)[0], Qt.Key_Return)


def test_pin_and_clear(page, recents) -> None:
    recents.add("/m/a.param", 1)
    recents.add("/m/b.param", 1)
    rows(page)[1].pin.click()
    assert [row.entry.path for row in rows(page)] == ["/m/a.param", "/m/b.param"]
    button(page, "startClear").click()
    assert [row.entry.path for row in rows(page)] == ["/m/a.param"]
    rows(page)[0].pin.click()
    button(page, "startClear").click()
    assert rows(page) == []
    assert not button(page, "startClear").isVisible()


def test_menu_of_a_recent(page, recents) -> None:
    recents.add("/m/a.param", 1)
    actions = {a.text(): a for a in rows(page)[0]._make_menu().actions()}
    assert set(actions) == {"Pin a.param", "Remove from the list", "Copy path"}
    actions["Copy path"].trigger()
    assert QGuiApplication.clipboard().text().endswith("a.param")
    actions["Remove from the list"].trigger()
    assert recents.entries() == ()


def test_failure(page) -> None:
    page.show_failure(Failure("The model cannot be opened", "bad magic"))
    assert not page.banner.isHidden()
    assert "Bad magic" in page.banner.plain_text()
    page.banner.closed.emit()
    assert page.banner.isHidden()


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["/a/m.bin", "/a/m.param"], "/a/m.param"),
        (["/a/m.bin"], "/a/m.bin"),
        (["/a/x.png"], ""),
        ([], ""),
    ],
)
def test_dropped_model(paths, expected: str) -> None:
    assert dropped_model(paths) == expected


def test_a_folder_is_a_model(tmp_path) -> None:
    assert dropped_model([str(tmp_path)]) == str(tmp_path)


def mime(path: str) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path)])
    return data


def test_dragging_says_what_will_happen(qtbot, page) -> None:
    data = mime("/a/resnet18.pnnx.param")
    enter = QDragEnterEvent(QPoint(5, 5), Qt.CopyAction, data, Qt.LeftButton, Qt.NoModifier)
    page.dragEnterEvent(enter)
    assert enter.isAccepted()
    assert "Open resnet18.pnnx.param" in texts(page)
    drop = QDropEvent(QPointF(5, 5), Qt.CopyAction, data, Qt.LeftButton, Qt.NoModifier)
    with qtbot.waitSignal(page.dropped) as heard:
        page.dropEvent(drop)
    assert heard.args == [["/a/resnet18.pnnx.param"]]
    assert "Drop a .param" in texts(page)


def test_inputs_are_left_to_the_window(page) -> None:
    data = mime("/a/x.png")
    enter = QDragEnterEvent(QPoint(5, 5), Qt.CopyAction, data, Qt.LeftButton, Qt.NoModifier)
    page.dragEnterEvent(enter)
    assert not enter.isAccepted()
