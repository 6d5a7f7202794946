"""The results of a sweep as one self-contained page of HTML."""

from __future__ import annotations

from engine.datasets.page.page import PAGE, write_summary_page

__all__ = ["PAGE", "write_summary_page"]
