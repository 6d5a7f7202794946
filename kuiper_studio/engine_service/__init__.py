"""The engine as a service: requests go in, replies come out, on a thread or in a process.

`protocol` has the messages, `server` carries requests out with an `engine.Session`,
`transport` brings both across. None of it knows Qt: the process of the engine never loads it.
"""

from __future__ import annotations
