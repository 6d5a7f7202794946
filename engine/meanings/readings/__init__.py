"""The engine's own readings, one kind of model per file."""
