"""Name, version and licences of the application and its libraries."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Qt, Slot, qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.backend_names import installed_version, missing_packages
from kuiper_studio.icons import app_icon, icon

if TYPE_CHECKING:
    from kuiper_studio.theme import Theme

__all__ = ["AboutDialog", "component_versions"]

_LICENCES = (
    "Kuiper Studio is free software under the MIT licence. It is made with Qt for Python "
    "(LGPL), NumPy (BSD), NetworkX (BSD), PyQtGraph (MIT), Pillow (MIT-CMU), ONNX Runtime "
    "(MIT), ONNX (Apache 2.0), ncnn (BSD) and threadpoolctl (BSD). Inter and JetBrains Mono "
    "come under the SIL Open Font License."
)


def component_versions() -> dict[str, str]:
    """Return the versions for a bug report, by component."""
    try:
        own = version("kuiper-studio")
    except PackageNotFoundError:
        own = "from a checkout"
    return {
        "Kuiper Studio": own,
        "Python": platform.python_version(),
        "Qt": qVersion() or "?",
        "NumPy": np.__version__,
        "ONNX Runtime": _library_version("onnxruntime"),
        "ncnn": _library_version("ncnn"),
        "System": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _library_version(backend: str) -> str:
    missing = missing_packages(backend)
    if missing:
        return f"not installed (pip install {' '.join(missing)})"
    return installed_version(backend) or "of unknown version"


class AboutDialog(QDialog):
    """Name, versions and licences.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("about")
        self.setWindowTitle("About Kuiper Studio")
        self.setFixedWidth(460)
        self._theme = theme
        self._versions = component_versions()
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(14)
        column.addLayout(self._make_head())
        column.addLayout(self._make_versions())
        licences = QLabel(_LICENCES)
        licences.setProperty("role", "tertiary")
        licences.setWordWrap(True)
        column.addWidget(licences)
        column.addLayout(self._make_buttons())
        self._close.setFocus()

    def _make_head(self) -> QHBoxLayout:
        picture = QLabel()
        picture.setPixmap(app_icon().pixmap(64, 64))
        name = QLabel("Kuiper Studio")
        name.setProperty("role", "heading")
        what = QLabel("Runs a PNNX model operator by operator and shows every tensor.")
        what.setProperty("role", "secondary")
        what.setWordWrap(True)
        words = QVBoxLayout()
        words.setSpacing(4)
        words.addWidget(name)
        words.addWidget(what)
        row = QHBoxLayout()
        row.setSpacing(16)
        row.addWidget(picture)
        row.addLayout(words, 1)
        return row

    def _make_versions(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(3)
        grid.setColumnStretch(1, 1)
        for place, (name, text) in enumerate(self._versions.items()):
            caption, value = QLabel(name), QLabel(text)
            caption.setProperty("role", "secondary")
            value.setProperty("role", "mono")
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            grid.addWidget(caption, place, 0)
            grid.addWidget(value, place, 1)
        return grid

    def _make_buttons(self) -> QHBoxLayout:
        copy = QPushButton("Copy versions")
        copy.setObjectName("aboutCopy")
        copy.setIcon(icon("copy", self._theme))
        copy.setAutoDefault(False)
        copy.clicked.connect(self._copy)
        close = QPushButton("Close")
        close.setDefault(True)
        self._close = close
        close.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.addWidget(copy)
        row.addStretch(1)
        row.addWidget(close)
        return row

    @Slot()
    def _copy(self) -> None:
        lines = (f"{name}: {text}" for name, text in self._versions.items())
        QGuiApplication.clipboard().setText("\n".join(lines))
