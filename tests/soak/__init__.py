"""Random actions on a window while models and files change; see ``make soak``."""
