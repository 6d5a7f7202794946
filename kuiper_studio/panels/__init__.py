"""The panels around graph and tensor view, and the pieces they are made of.

A panel gets the session and the theme, calls the one, listens to both, and knows no other
view; what it works out without Qt stands in a module of its own beside it.
"""
