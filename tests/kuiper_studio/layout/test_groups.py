"""Groups of networks whose modules are known, and what must hold for every graph."""

from __future__ import annotations

from itertools import chain

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuiper_studio.layout.groups import Group, find_groups


class Network:
    """Operators that are written down one after the other."""

    def __init__(self) -> None:
        self.paths, self.kinds, self.edges = [], [], []

    def add(self, kind, *sources, path=None) -> int:
        """Add an operator; its path as in a name, ``""`` for none, None for a lost one."""
        index = len(self.kinds)
        known = None if path is None else tuple(filter(None, path.split(".")))
        self.paths.append(known)
        self.kinds.append(kind)
        self.edges += [(source, index, source) for source in sources]
        return index

    @property
    def groups(self) -> Group:
        return find_groups(self.paths, self.kinds, self.edges)


def brief(group):
    """The groups inside as name, first and last operator; a stack with its number."""
    return [
        (child.name, child.first, child.last, *([len(child.children)] * child.is_stack))
        for child in group.children
    ]


def resnet(*stages):
    """A ResNet of basic blocks as pnnx writes it: only one of the ReLUs of a block is named."""
    net = Network()
    last = net.add("input", path="")
    for kind in ("conv7", "relu", "pool"):
        last = net.add(kind, last, path=None if kind == "conv7" else "")
    for stage, blocks in enumerate(stages, 1):
        for block in range(blocks):
            begins = block == 0 and stage > 1
            skip = last
            last = net.add(f"conv {stage} {begins}", skip)
            last = net.add(f"relu {stage}", last, path=f"layer{stage}.{block}")
            last = net.add(f"conv {stage}", last)
            if begins:
                skip = net.add(f"down {stage}", skip)
            last = net.add(f"add {stage}", last, skip)
            last = net.add(f"relu {stage}", last)
    for kind, path in (("mean", ""), ("flatten", None), ("linear", ""), ("output", "")):
        last = net.add(kind, last, path=path)
    return net


def test_modules_of_resnet18_take_what_lost_its_name():
    groups = resnet(2, 2, 2, 2).groups
    # 4 to 13: two blocks of conv, relu, conv, add, relu; later stages begin with one more conv.
    assert brief(groups) == [
        ("layer1", 4, 13),
        ("layer2", 14, 24),
        ("layer3", 25, 35),
        ("layer4", 36, 46),
    ]
    assert all(not group.children for group in groups.children)  # ten operators are few enough


def test_equal_blocks_of_a_stage_are_one_stack():
    groups = resnet(6, 5).groups
    first, second = groups.children
    assert (first.name, first.first, first.last, first.is_stack) == ("layer1", 4, 33, True)
    assert brief(first) == [(f"layer1.{n}", 4 + 5 * n, 8 + 5 * n) for n in range(6)]
    assert brief(second) == [("layer2.0", 34, 39), ("layer2.1…4", 40, 59, 4)]


def vit(layers):
    net = Network()
    image = net.add("input", path="")
    patches = net.add("conv", image, path="")
    token = net.add("attribute")
    tokens = net.add("cat", patches, token)
    last = net.add("add", tokens)
    for layer in range(layers):
        module = f"encoder.layers.encoder_layer_{layer}"
        skip = last
        last = net.add("norm", last, path=module)
        last = net.add("attention", last, path=module)
        skip = last = net.add("add", last, skip)
        last = net.add("norm", last, path=module)
        for kind in ("linear up", "gelu", "linear down"):
            last = net.add(kind, last, path=f"{module}.mlp")
        last = net.add("add", last, skip)
    for kind, path in (("norm", "encoder"), ("select", None), ("linear", "heads")):
        last = net.add(kind, last, path=path)
    net.add("output", last, path="")
    return net


def test_the_layers_of_vit_are_a_stack():
    groups = vit(12).groups
    assert brief(groups) == [("encoder.layers", 5, 100, 12)]
    layers = groups.children[0]
    assert brief(layers) == [
        (f"encoder.layers.encoder_layer_{n}", 5 + 8 * n, 12 + 8 * n) for n in range(12)
    ]
    assert [group.name for group in groups.path_to(50)] == [
        "encoder.layers",
        "encoder.layers.encoder_layer_5",
    ]
    assert groups.path_to(2) == ()


def swin_block(net, last, module, *, shifted):
    skip = last
    last = net.add("norm", last, path=module)
    if shifted:
        last = net.add("roll", last)
    for kind in ("reshape", "permute", "reshape"):
        last = net.add(kind, last)
    mask = net.add(f"mask {shifted}")
    last = net.add("attention", last, mask)
    for kind in ("reshape", "permute", "reshape", *["roll"] * shifted):
        last = net.add(kind, last)
    skip = last = net.add("add", last, skip)
    last = net.add("norm", last, path=module)
    for kind in ("linear up", "gelu", "linear down"):
        last = net.add(kind, last, path=f"{module}.mlp")
    return net.add("add", last, skip)


def test_stages_of_swin_keep_their_pairs_of_blocks_and_the_merging_its_slices():
    net = Network()
    last = net.add("input", path="")
    last = net.add("conv", last, path="features.0")
    last = net.add("permute", last)
    last = net.add("norm", last, path="features.0")
    for stage, blocks in ((1, 2), (3, 6)):
        for block in range(blocks):
            last = swin_block(net, last, f"features.{stage}.{block}", shifted=bool(block % 2))
        slices = [net.add("slice", last) for _ in range(4)]
        last = net.add("cat", *slices)
        last = net.add("norm", last, path=f"features.{stage + 1}")
        last = net.add("linear", last, path=f"features.{stage + 1}")
    net.add("output", last, path="")
    # 15 operators in a plain block, 17 in a shifted one, 7 in the merging of patches.
    assert brief(net.groups) == [
        ("features.1", 4, 35),
        ("features.2", 36, 42),
        ("features.3", 43, 138, 3),
        ("features.4", 139, 145),
    ]
    first, _, pairs, _ = net.groups.children
    assert brief(first) == [("features.1.0", 4, 18), ("features.1.1", 19, 35)]
    assert brief(pairs) == [
        ("features.3.0…1", 43, 74),
        ("features.3.2…3", 75, 106),
        ("features.3.4…5", 107, 138),
    ]
    assert brief(pairs.children[1]) == [("features.3.2", 75, 89), ("features.3.3", 90, 106)]


def transformer(blocks, length=5):
    """Nameless blocks with a mask that all of them use."""
    net = Network()
    last = net.add("input", path="")
    mask = net.add("mask", last)
    for _ in range(blocks):
        skip = last
        for number in range(length - 2):
            last = net.add(f"part {number}", last)
        last = net.add("attention", last, mask)
        last = net.add("add", last, skip)
    net.add("output", last, path="")
    return net


def test_nameless_blocks_get_numbers():
    groups = transformer(12).groups
    assert brief(groups) == [("block 1…12", 2, 61, 12)]
    stack = groups.children[0]
    assert brief(stack)[0] == ("block 1", 2, 6)
    assert brief(stack)[-1] == ("block 12", 57, 61)


def test_a_chain_of_ten_thousand_operators_has_few_groups_at_a_time():
    groups = transformer(2000).groups
    assert brief(groups) == [("block 1…2000", 2, 10001, 2000)]


def test_what_has_no_structure_is_cut_into_blocks_where_few_operands_pass():
    net = Network()
    skip = last = net.add("input", path="")
    for number in range(600):
        # Every tenth operator begins a skip over the next nine.
        skip = last if number % 10 == 0 else skip
        takes = (last, skip) if number % 10 == 9 else (last,)
        last = net.add(f"kind {number}", *takes)
    net.add("output", last, path="")
    groups = net.groups
    assert len(list(groups.items())) <= 40
    inner = groups.children[1].children or groups.children[1:3]
    # Before number 10k + 1 only one operand passes: the operator that begins the skip.
    assert all((group.first - 1) % 10 in {0, 1} for group in inner)
    assert [group.name for group in groups.children[:2]] == ["block 1", "block 2"]


def test_blocks_that_differ_in_one_edge_are_not_equal():
    net = transformer(6)
    # The third block's second part takes the block's input too.
    net.edges.append((11, 13, 11))
    assert brief(net.groups) == [("block 1…2", 2, 11, 2), ("block 3…5", 17, 31, 3)]


def test_nothing_to_group():
    assert find_groups([], [], []) == Group("", 0, -1)
    assert find_groups([()], ["input"], []) == Group("", 0, 0)


# For every graph


@st.composite
def networks(draw):
    """Random operators in some order, with names of two levels and without."""
    count = draw(st.integers(1, 120))
    names = st.sampled_from(
        [None, None, (), ("a",), ("a", "0"), ("a", "1"), ("b",), ("b", "x")]
    )
    runs = draw(st.lists(st.tuples(names, st.integers(1, 12)), min_size=1, max_size=20))
    paths = [name for name, length in runs for _ in range(length)][:count]
    count = len(paths)
    kinds = [draw(st.integers(0, 2)) for _ in range(count)]
    edges = [
        (source, target, source)
        for target in range(1, count)
        for source in draw(st.sets(st.integers(max(0, target - 9), target - 1), max_size=3))
    ]
    return paths, kinds, edges


def leaves(group):
    """Lists of operators: of each group those that are in no group inside."""
    yield [item for item in group.items() if isinstance(item, int)]
    for child in group.children:
        yield from leaves(child)


def every(group):
    yield group
    for child in group.children:
        yield from every(child)


@given(networks())
@settings(max_examples=60, deadline=None)
def test_every_operator_has_one_place_and_collapsed_graphs_have_no_cycles(network):
    paths, _, edges = network
    root = find_groups(*network)
    assert sorted(chain.from_iterable(leaves(root))) == list(range(len(paths)))
    for group in every(root):
        home = {}
        for number, item in enumerate(group.items()):
            inside = [item] if isinstance(item, int) else range(item.first, item.last + 1)
            home |= dict.fromkeys(inside, number)
        collapsed = nx.DiGraph()
        kept = 0
        for source, target, _ in edges:
            if source in home and target in home:
                kept += 1
                if home[source] != home[target]:
                    collapsed.add_edge(home[source], home[target])
        assert nx.is_directed_acyclic_graph(collapsed)
        within = range(group.first, group.last + 1)
        assert kept == sum(s in within and t in within for s, t, _ in edges)
        assert not group.is_stack or (
            len(group.children) > 1
            and sum(child.size for child in group.children) == group.size
            and len({child.size for child in group.children}) == 1
        )


@pytest.mark.parametrize("count", [3, 40, 41, 3000])
def test_a_row_of_equal_operators(count):
    net = Network()
    last = net.add("input", path="")
    for _ in range(count):
        last = net.add("relu", last)
    root = net.groups
    assert len(list(root.items())) <= 41
    assert sorted(chain.from_iterable(leaves(root))) == list(range(count + 1))
