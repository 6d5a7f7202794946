"""Benchmarks: how fast the project is, measured beside what it is compared with.

``make bench`` runs them and prints a table. They are no tests: nothing here passes or fails,
and pytest collects none of it. Each file measures one family of figures (`benchmarks.points`
lists them) and yields a `Row` for each. What is compared is run alternately, round after
round, and the *ratio* of the two is what counts: milliseconds belong to a machine and to its
mood. What has a thread pool of its own, or is about memory or starting, runs in a process of
its own (`benchmarks.processes`).
"""
