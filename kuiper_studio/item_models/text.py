"""Formats names and parameters for the window; for numbers see `engine.text`."""

from __future__ import annotations

import html
import re

__all__ = ["caption_text", "elided", "param_text", "tip_text", "with_short_words"]


def param_text(value: object) -> str:
    """Format a parameter like Python: ``(3, 3)``, ``'zeros'``, ``True``."""
    return repr(value)


def elided(text: str, limit: int) -> str:
    """Elide the middle of a text that is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    head = limit // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def with_short_words(text: str, longest: int) -> str:
    """Elide the middle of each word that is longer than `longest` characters.

    A word is never wrapped: a label becomes as wide as its longest one.
    """
    return re.sub(rf"\S{{{longest + 1},}}", lambda word: elided(word[0], longest), text)


def caption_text(text: str) -> str:
    """Escape a name for a button, tab or menu, where Qt takes ``&`` for a mnemonic."""
    return text.replace("&", "&&")


def tip_text(text: str) -> str:
    """Escape names for a tool tip, where Qt takes ``<b>`` for HTML."""
    if "<" not in text and "&" not in text:
        return text
    return f'<div style="white-space:pre-wrap">{html.escape(text, quote=False)}</div>'
