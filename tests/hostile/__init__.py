"""Models made to do harm: random operators, their numbers at the ends of what a file can say.

``PYTHONPATH=tests python -m hostile --seeds 1000`` runs them on every backend, each in a
process whose memory and time are limited, and tells what crashed, hung, took memory beyond
the bound, or raised what nobody foresaw. `models` makes the model of a seed, `worker` runs
some in one process, ``__main__`` starts workers and watches them. With ``--files`` valid files
that `files` damages take the place of models; `file_worker` uses them.
"""
