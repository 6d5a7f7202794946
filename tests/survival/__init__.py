"""Interrupts sweeps of a data set at random moments, and checks that nothing is lost."""
