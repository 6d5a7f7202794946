"""Trees, the other forms of an expression, broken brackets, and errors."""

from __future__ import annotations

import gc
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ExpressionError
from engine.expression import FUNCTIONS, Call, Constant, ListNode, OperandRef, parse

DEPTH = 100_000


def test_tree():
    text = " add( @0,[2.5 ,True]) "
    expression = parse(text)
    root = expression.root
    assert isinstance(root, Call)
    assert root.name == "add"
    first, second = root.args
    assert isinstance(first, OperandRef)
    assert first.operand == 0
    assert isinstance(second, ListNode)
    assert [item.value for item in second.items if isinstance(item, Constant)] == [2.5, True]
    assert expression.nodes == (first, *second.items, second, root)
    assert [node.index for node in expression.nodes] == [0, 1, 2, 3, 4]
    assert [text[node.start : node.end] for node in expression.nodes] == [
        "@0", "2.5", "True", "[2.5 ,True]", "add( @0,[2.5 ,True])",
    ]  # fmt: skip
    assert root.position == 1
    assert repr(root) == "<Call #4 add(#0, #3)>"
    assert repr(first) == "<OperandRef #0 @0>"


def test_nodes_are_places_not_values():
    first, second = parse("add(1,1)").root.children
    assert first != second
    assert len({first, second}) == 2


@pytest.mark.parametrize(
    ("text", "rpn"),
    [
        ("@0", "@0"),
        ("add(@0,@1)", "@0 @1 add"),
        ("add(mul(@0,2.5),neg(@1))", "@0 2.5 mul @1 neg add"),
        ("mul(add(@0,@1),add(@0,@2))", "@0 @1 add @0 @2 add mul"),
        ("[]", "[]/0"),
        ("[None,None,[1,0]]", "None None 1 0 []/2 []/3"),
        ("size(@0)", "@0 size/1"),
        ("int(size(@0,-1))", "@0 -1 size/2 int"),
        ("torch.long(@0)", "@0 torch.long"),
        ("sub(1.2-9e-01j,@0)", "1.2-0.9j @0 sub"),
    ],
)
def test_reverse_polish_form(text, rpn):
    assert parse(text).rpn == tuple(rpn.split())


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (" add ( @0 , 1.000000e6 ) ", "add(@0,1000000.0)"),
        ("sub(@0,0.000000e+00+4.000000e+00j)", "sub(@0,0.0+4.0j)"),
        ("[1,-0.0,inf,-inf,nan,None,same]", "[1,-0.0,inf,-inf,nan,None,same]"),
        ("1.2+-0.9j", "1.2-0.9j"),
        ("1+nanj", "1.0+nanj"),
        ("size( @0 )", "size(@0)"),
        ("[[],[@0]]", "[[],[@0]]"),
        ("(@0)", "@0"),
        # what pnnx writes with broken brackets
        ("log1p,@0", "log1p(@0)"),
        ("expm1,sub(@0,0.5)", "expm1(sub(@0,0.5))"),
        ("add(expm1,@0),mul(log1p,@1),3", "add(expm1(@0),mul(log1p(@1),3))"),
        ("mul(add(expm1,@0),log1p,@1),3", "mul(add(expm1(@0),log1p(@1)),3)"),
        ("add(@0,,mul(@1,2))", "add(@0,mul(@1,2))"),
        ("sub(,mul(@1,2),@0)", "sub(mul(@1,2),@0)"),
        ("[log1p,@0,3]", "[log1p(@0),3]"),
        ("[[log1p,@0],[3]]", "[[log1p(@0)],[3]]"),
        ("div(log1p,@0),size(@1,2)", "div(log1p(@0),size(@1,2))"),
        ("add(log1p,@0),[]", "add(log1p(@0),[])"),
        ("log1p,size(@0)", "log1p(size(@0))"),
    ],
)
def test_normal_form(text, normal):
    expression = parse(text)
    assert str(expression) == normal
    again = parse(normal)
    assert str(again) == normal
    assert again == expression
    assert hash(again) == hash(expression)


def test_equality_is_of_meaning():
    assert parse("add(@0, 1)") == parse("add(@0,+1)")
    assert parse("add(@0,1)") != parse("add(@0,1.0)")
    assert parse("add(@0,1)") != parse("add(@0,True)")
    assert parse("@0") != "@0"
    assert repr(parse("log1p,@0")) == "parse('log1p,@0')"


def test_spans_in_broken_brackets():
    text = "add(expm1,@0),mul(log1p,@1),3"
    expression = parse(text)
    assert {node.label: text[node.start : node.end] for node in expression.nodes} == {
        "@0": "@0",
        "expm1": "expm1,@0",
        "@1": "@1",
        "log1p": "log1p,@1",
        "3": "3",
        "mul": "mul(log1p,@1),3",
        "add": text,
    }
    text = "[1,log1p,[2]]"
    assert [text[n.start : n.end] for n in parse(text).nodes] == [
        "1", "2", "[2]", "log1p,[2]", text,
    ]  # fmt: skip


def test_operand_count():
    assert parse("1.5").operand_count == 0
    assert parse("add(@0,@4)").operand_count == 5
    parse("add(@0,@4)", operand_count=5)
    parse("add(@0,@4)").check_operands(5)


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "the expression is empty"),
        ("  ", 0, "the expression is empty"),
        ("add(@0,#)", 7, "'#' is not allowed"),
        ("add(@0", 3, "'(' is never closed"),
        ("add([@0,1)", 9, "')' cannot close '['"),
        ("[@0,(1]", 6, "']' cannot close '('"),
        ("add(@0,@1))", 10, "')' was never opened"),
        ("]", 0, "']' was never opened"),
        ("log1p,@0)", 8, "')' was never opened"),
        ("foo(@0)", 0, "there is no function 'foo'; did you mean 'floor'?"),
        ("add(zzz(@0),1)", 4, "there is no function 'zzz'"),
        ("torch.lnog(1)", 0, "there is no function 'torch.lnog'; did you mean 'torch.long'?"),
        ("sqr,@0", 0, "there is no function 'sqr'; did you mean 'sqrt'?"),
        ("sqr,log1p,@0", 0, "there is no function 'sqr'; did you mean 'sqrt'?"),
        ("add(@0)", 6, "'add' takes 2 arguments, not 1"),
        ("mul(add(@0,neg()),1)", 15, "'neg' takes 1 argument, not 0"),
        ("size()", 5, "'size' takes 1 or 2 arguments, not 0"),
        ("add", 0, "'add' takes 2 arguments, not 0"),
        ("add(log1p,@0)", 0, "'add' takes 2 arguments, not 1"),
        ("[add,@0]", 1, "'add' takes 2 arguments, not 1"),
        ("add(@0,@1,@2)", 10, "'add' takes 2 arguments, not 3"),
        ("neg(1,[2,3])", 6, "'neg' takes 1 argument, not 2"),
        ("size(@0,1,2)", 10, "'size' takes 1 or 2 arguments, not 3"),
        ("@0,@1", 3, "a second value; an expression has only one"),
        ("log1p,@0,@1", 9, "a second value; an expression has only one"),
        ("add(,@0)", 4, "a value is missing before ','"),
        ("add(@0,)", 7, "a value is missing before ')'"),
        ("()", 0, "there is no function before '('"),
        ("3(@0)", 1, "there is no function before '('"),
        ("add(@0,@1)(@2)", 10, "there is no function before '('"),
        ("@0 @1", 3, "a ',' is missing"),
        (",", 0, "a value is missing before ','"),
        ("@3", 0, "there is no operand @3; the operator has 2"),
        ("add(@0,neg(@2))", 11, "there is no operand @2; the operator has 2"),
    ],
)  # fmt: skip
def test_errors_point_at_the_character(text, position, reason):
    with pytest.raises(ExpressionError) as caught:
        parse(text, operand_count=2)
    assert (caught.value.position, caught.value.reason) == (position, reason)
    assert f"at character {position + 1} " in str(caught.value)


def test_a_value_missing_at_the_end():
    with pytest.raises(ExpressionError) as caught:
        parse("neg,")
    assert caught.value.reason == "'neg' takes 1 argument, not 0"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("opening", "leaf", "closing"),
    [
        ("neg(", "@0", ")"),
        ("add(", "@0", ",1)"),
        ("add(1,", "@0", ")"),
        ("[", "", "]"),
        ("neg,", "@0", ""),
    ],
)
def test_any_depth(opening, leaf, closing):
    text = opening * DEPTH + leaf + closing * DEPTH
    expression = parse(text)
    assert len(expression.rpn) == len(expression.nodes) >= DEPTH
    assert str(expression).replace(",", "") == text.replace(",", "") or not closing
    assert expression == expression
    hash(expression)
    top = expression.root
    assert repr(top)
    del expression
    gc.collect()
    del top  # the whole chain goes at once
    gc.collect()


def test_any_width():
    expression = parse("[" + ",".join(f"@{i}" for i in range(50_000)) + "]")
    assert len(expression.root.children) == expression.operand_count == 50_000


NAMES = [name for name, function in FUNCTIONS.items() if function.least == function.most]
leaves = st.one_of(
    st.integers(0, 9).map("@{}".format),
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats().map(repr),
    st.sampled_from(["True", "False", "None", "same"]),
)


def _call(children: st.SearchStrategy[list]) -> st.SearchStrategy[list]:
    """Trees as lists in prefix order: name, then as many trees as it takes."""
    return st.sampled_from(NAMES).flatmap(
        lambda name: st.tuples(*[children] * FUNCTIONS[name].least).map(lambda a: [name, *a])
    )


trees = st.recursive(leaves, _call, max_leaves=20)


def _text(tree) -> str:
    return tree if isinstance(tree, str) else f"{tree[0]}({','.join(map(_text, tree[1:]))})"


def _prefix(tree) -> list[str]:
    return [tree] if isinstance(tree, str) else sum(map(_prefix, tree[1:]), [tree[0]])


@given(trees, st.data())
def test_brackets_do_not_matter(tree, data):
    """Without any bracket, or with commas doubled, the tree is the same."""
    whole = parse(_text(tree))
    assert parse(",".join(_prefix(tree))) == whole
    doubled = re.sub(",", lambda _: data.draw(st.sampled_from([",", ",,"])), _text(tree))
    assert parse(doubled) == whole


@given(trees)
def test_children_lie_inside_their_node_and_in_order(tree):
    expression = parse(_text(tree))
    assert parse(str(expression)) == expression
    for node in expression.nodes:
        spans = [(child.start, child.end) for child in node.children]
        assert all(node.start < start and end < node.end for start, end in spans)
        assert all(end < start for (_, end), (start, _) in pairwise(spans))


@given(st.text(alphabet="add neg size @01.e+-j,()[]True#inf", max_size=40))
def test_any_text_gives_an_expression_or_an_expression_error(text):
    position = 0
    try:
        expression = parse(text)
    except ExpressionError as error:
        position = error.position
    else:
        assert parse(str(expression)) == expression
    assert 0 <= position <= len(text)


@pytest.mark.shared
def test_every_expression_of_the_corpus(shared):
    texts = {
        token.removeprefix("expr=")
        for path in shared.glob("conformance*/*/*.param")
        for token in path.read_text(encoding="utf-8").split()
        if token.startswith("expr=")
    }
    assert len(texts) > 60
    for text in texts:
        expression = parse(text)
        assert parse(str(expression)) == expression
