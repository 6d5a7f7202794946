"""Specifications, a file for each family of operators; every file here is read."""
