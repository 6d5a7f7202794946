"""Writes a comparison as one self-contained HTML page."""

from __future__ import annotations

from engine.comparison.report.page import write_report

__all__ = ["write_report"]
