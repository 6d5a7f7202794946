"""Models made to do harm: random operators with extreme numbers.

``PYTHONPATH=tests python -m hostile --seeds 1000`` runs them on every backend, in processes
whose memory and time are limited. It reports models that crashed, hung, exceeded the memory
bound, or raised an unforeseen error. `models` makes the model of a seed, `worker` runs some in
one process, ``__main__`` starts workers and watches them. With ``--files`` valid files that
`files` damages take the place of models; `file_worker` uses them.
"""
