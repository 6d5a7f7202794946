"""Random actions on a window, while models and files change underneath; see ``make soak``."""
