"""Where a number comes from: the terms of one element, and what it depends on.

`engine.explain_element` breaks an element down to the products and sums that made it.
`engine.receptive_field` returns the part of the model's inputs that it depends on. The rules
are in `engine.provenance.rules`, by family of operators. Importing this package, or
`engine.provenance.records`, imports no layer.
"""
