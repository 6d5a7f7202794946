"""Breaks down random elements of every operator of many models, and checks each number.

``PYTHONPATH=tests python -m provenance FOLDER`` runs all pairs below a folder that have their
inputs beside them; a few run with the tests.
"""
