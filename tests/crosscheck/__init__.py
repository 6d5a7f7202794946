"""Cross-check: random small modules, exported with pnnx, run here and in eager PyTorch.

``make crosscheck`` runs it. A *specification* (`crosscheck.specification`) draws a module and
its inputs; the files in ``families/`` hold them. Many drawn cases go into one export
(`crosscheck.export`), because starting pnnx is what costs time. The engine then runs the graph
(`crosscheck.check`), and every operand is compared with PyTorch: what the module returns with
the module itself, what lies between with the script that pnnx writes beside its graph
(`crosscheck.script`). What the arithmetic does with every dtype and special value is tested
without a file, in ``tests/engine/layers/crosscheck``.
"""
