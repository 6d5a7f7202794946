"""Windows that open over the main one: palette, export, shortcuts, about."""

from __future__ import annotations

from kuiper_studio.dialogs.about import AboutDialog
from kuiper_studio.dialogs.command_palette import CommandPalette
from kuiper_studio.dialogs.export_dialog import ExportDialog
from kuiper_studio.dialogs.shortcuts import ShortcutsSheet

__all__ = ["AboutDialog", "CommandPalette", "ExportDialog", "ShortcutsSheet"]
