"""Which modules the names of operators tell, for the groups of the graph."""

from __future__ import annotations

import engine
from kuiper_studio.item_models.operator_groups import group_operators


def groups_of(make_pair, names):
    """The groups of a chain of operators with these names and one type each."""
    lines = ["pnnx.Input in 0 1 0 #0=(1,4)f32"]
    lines += [
        f"F.relu {name} 1 1 {number} {number + 1} #{number + 1}=(1,4)f32"
        for number, name in enumerate(names)
    ]
    lines.append(f"pnnx.Output out 1 0 {len(names)}")
    root = group_operators(engine.load(make_pair(*lines)))
    return [(group.name, group.first, group.last) for group in root.children]


def test_names_of_pnnx_are_no_modules(make_pair):
    """What pnnx made belongs to the modules around it; a name without dots is outside."""
    names = [
        "stem",
        *(f"body.{n}" for n in range(3)),
        *("convbn2d_0", "pnnx_expr_3", "F.relu_7", "torch.cat_2"),
        *(f"body.{n}" for n in range(3, 6)),
        "pool",
        *(f"head.{n}" for n in range(6)),
        *(f"other_{n}" for n in range(6)),
        "last",
    ]
    assert groups_of(make_pair, names) == [("body", 2, 11), ("head", 13, 24)]


def test_a_name_may_have_any_number_of_dots(make_pair):
    deep = ".".join("a" * 5000)
    names = [*(f"{deep}.{n}" for n in range(6)), *(f"b.{n}" for n in range(6)), "end"]
    assert groups_of(make_pair, names) == [("a", 1, 6), ("b", 7, 12)]
