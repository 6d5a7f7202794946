"""What the about dialog tells."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from PySide6.QtCore import qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton

from kuiper_studio.dialogs import about
from kuiper_studio.dialogs.about import AboutDialog, component_versions
from kuiper_studio.theme import Scheme, Theme


@pytest.fixture(params=[Scheme.DARK, Scheme.LIGHT], ids=["dark", "light"])
def dialog(qtbot, request):
    made = AboutDialog(Theme(request.param))
    qtbot.addWidget(made)
    made.show()
    return made


def test_versions():
    found = component_versions()
    assert found["Python"] == platform.python_version()
    assert found["Qt"] == qVersion()
    assert found["NumPy"] == np.__version__
    assert found["Kuiper Studio"][0].isdigit()


def test_backends(monkeypatch):
    monkeypatch.setattr(
        "engine.backend_names.find_spec", lambda name: name if "o" in name else None
    )
    monkeypatch.setattr("importlib.metadata.version", {"onnxruntime": "1.23.4"}.__getitem__)
    monkeypatch.setattr(about, "version", {"kuiper-studio": "1.0"}.__getitem__)
    found = component_versions()
    assert found["ONNX Runtime"] == "1.23.4"
    assert found["ncnn"] == "not installed (pip install ncnn)"


def test_checkout_that_is_not_installed(monkeypatch):
    def missing(name):
        raise about.PackageNotFoundError(name)

    monkeypatch.setattr(about, "version", missing)
    assert component_versions()["Kuiper Studio"] == "from a checkout"


def test_tells_name_and_licences(dialog):
    text = " ".join(label.text() for label in dialog.findChildren(QLabel))
    for word in ("Kuiper Studio", np.__version__, "MIT", "LGPL", "SIL Open Font License"):
        assert word in text


def test_copies_versions(dialog):
    dialog.findChild(QPushButton, "aboutCopy").click()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert f"NumPy: {np.__version__}" in lines
    assert len(lines) == len(component_versions())


def test_closes(dialog):
    buttons = [button for button in dialog.findChildren(QPushButton) if button.isDefault()]
    (close,) = buttons
    close.click()
    assert not dialog.isVisible()
