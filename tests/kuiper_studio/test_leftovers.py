"""The window offers what a killed process was about to replace."""

from __future__ import annotations

import json

import pytest
from PySide6.QtWidgets import QPushButton

from engine.atomic import written_beside


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KUIPER_STUDIO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache" / "writing").mkdir(parents=True)
    return tmp_path / "cache"


@pytest.fixture
def leave(cache, tmp_path):
    """A function that leaves a dump as a process that was killed between the two renames."""

    def leave(name):
        holder, destination = tmp_path / f".kuiper-{name}", tmp_path / f"dump {name}"
        for part in ("new", "old"):
            (holder / part).mkdir(parents=True)
            (holder / part / "manifest.json").write_text(f"{part} {name}")
        content = json.dumps({"holder": str(holder), "destination": str(destination)})
        (cache / "writing" / f"{name}.json").write_text(content)
        return holder, destination

    return leave


def offer(qtbot, window):
    qtbot.waitUntil(window.leftovers_banner.isVisible)
    return window.leftovers_banner.plain_text()


def press(window, text):
    banner = window.leftovers_banner
    (button,) = (b for b in banner.findChildren(QPushButton) if b.text() == text)
    assert button.isVisible()
    assert button.isEnabled()
    button.click()


def test_restored_on_the_start_page(qtbot, leave, open_window):
    holder, destination = leave("a")
    window = open_window()
    assert offer(qtbot, window) == (
        f"A process was killed while it replaced dump a. "
        f"The earlier version of {destination} is in {holder / 'old'}."
    )
    with qtbot.waitSignal(window.leftovers_banner.restored):
        press(window, "Restore")
    assert (destination / "manifest.json").read_text() == "old a"
    assert not holder.exists()
    assert not window.leftovers_banner.isVisible()
    assert window.session.workspace.log_entries[-1].text == "dump a is restored"


def test_removed_over_a_model(qtbot, leave, open_window, residual, cache):
    window = open_window(residual)
    qtbot.wait(50)
    assert not window.leftovers_banner.isVisible()
    holder, destination = leave("a")  # by this window's engine, say
    window.session.reload()
    offer(qtbot, window)
    with qtbot.waitSignal(window.leftovers_banner.removed):
        press(window, "Remove")
    assert not holder.exists()
    assert not destination.exists()
    window.session.reload()
    qtbot.waitUntil(lambda: not list((cache / "writing").iterdir()))
    assert not window.leftovers_banner.isVisible()


def test_kept_until_the_next_start(qtbot, leave, open_window, residual):
    holder, _ = leave("a")
    window = open_window(residual)
    offer(qtbot, window)
    press(window, "Keep")
    assert not window.leftovers_banner.isVisible()
    window.session.reload()
    qtbot.waitUntil(lambda: not window.session.busy)
    qtbot.wait(100)
    assert not window.leftovers_banner.isVisible()
    assert (holder / "old").is_dir()
    offer(qtbot, open_window())


def test_one_after_the_other(qtbot, leave, open_window):
    for name in ("a", "b"):
        leave(name)
    window = open_window()
    assert "A process was killed while it replaced dump a (1 of 2)." in offer(qtbot, window)
    press(window, "Keep")
    assert offer(qtbot, window).startswith("A process was killed while it replaced dump b")
    window.leftovers_banner.close_button.click()
    assert not window.leftovers_banner.isVisible()


def test_nothing_that_is_there_again_is_replaced(qtbot, leave, open_window):
    holder, destination = leave("a")
    destination.mkdir()
    window = open_window()
    assert offer(qtbot, window).endswith(
        "dump a exists again: move it away to restore the earlier version."
    )
    buttons = window.leftovers_banner.findChildren(QPushButton)
    assert [b.text() for b in buttons if b.isEnabled()] == ["Remove", "Keep"]
    destination.rmdir()
    window.leftovers_banner.look()
    qtbot.waitUntil(buttons[0].isEnabled)
    destination.mkdir()  # meanwhile
    with qtbot.waitSignal(window.session.workspace.logged):
        press(window, "Restore")
    entry = window.session.workspace.log_entries[-1]
    assert entry.text == f"{destination} exists again; move it away first"
    assert (holder / "old").is_dir()
    offer(qtbot, window)


def test_what_is_being_written_is_not_offered(qtbot, cache, tmp_path, open_window):
    target = tmp_path / "dump"
    with written_beside(target) as partial:
        partial.mkdir()
        (partial.parent / "old").mkdir()
        window = open_window()
        answers = []
        window.leftovers_banner._background.finished.connect(answers.append)
        window.leftovers_banner.look()
        qtbot.waitUntil(lambda: len(answers) > 0)
        assert not window.leftovers_banner.isVisible()
        assert partial.is_dir()
