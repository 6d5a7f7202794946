"""The panels around graph and tensor view, and their parts.

A panel gets the session and the theme. It calls the session, listens to both, and knows no
other view. Computations that need no Qt are in modules of their own.
"""
