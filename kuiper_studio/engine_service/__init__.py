"""The engine behind messages, in its own process or on a thread.

`protocol` has the messages, `server` carries requests out with an `engine.Session`,
`transport` carries both. None of it imports Qt, so the engine's process never loads it.
"""

from __future__ import annotations
