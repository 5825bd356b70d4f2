"""What loops and branches refuse: each with its message, and with the user's line.

Where it matters both ways are tried: on known values, step by step, and while a graph is built.
"""

import re

import numpy as np
import pytest

import wengert as wg
from wengert.errors import (
    ArgumentError,
    DtypeError,
    GraphError,
    GuardError,
    ShapeError,
    StructureError,
    TracedBranchError,
    TraceError,
)

X = np.arange(3.0)


def same(c, _):
    return c, None


def first(x):
    return x


def short(x):
    return x[:2]


def single(x):
    return x.astype(np.float32)


def twice(x):
    return x, x


def nothing(x):
    return None


def refuses(f, error, message, *args, modes=("eager", "graph", "jit")):
    """Require an error of that class, with that message and the line of the test, in all modes."""
    ways = {
        "eager": f,
        "graph": lambda *args: wg.trace(f)(*args),
        "jit": lambda *args: wg.jit(f)(*args),
    }
    for mode in modes:
        with pytest.raises(error) as caught:
            ways[mode](*args)
        assert type(caught.value) is error, mode
        text = str(caught.value)
        assert re.search(message, text), (mode, text)
        assert re.search(r"\(at .*test_bad_input\.py:\d+, in .*\)\.$", text), (mode, text)


IN_STEPS = {
    "carry grows": (
        lambda x: wg.scan(lambda c, v: (np.concatenate([c, c]), None), x, x),
        ShapeError,
        r"carry is float64\[3\] at the start and float64\[6\] after a step. Return the same shape",
    ),
    "carry becomes a float": (
        lambda x: wg.scan(lambda c, v: (c + v, None), 0, x),
        DtypeError,
        r"carry is int64\[\] at the start and float64\[\] after a step. Start with float64 .*0\.0",
    ),
    "part of a carry becomes single": (
        lambda x: wg.fori_loop(
            0, 2, lambda i, c: {"a": single(c["a"]), "b": c["b"]}, {"a": x, "b": 1}
        ),
        DtypeError,
        r"fori_loop: the carry at \['a'\] is float64\[3\] at the start and float32\[3\]",
    ),
    "carry is complex": (
        lambda x: wg.while_loop(lambda c: np.any(np.abs(c) < 9), lambda c: c * 2j, x),
        DtypeError,
        r"while_loop: the carry is float64\[3\] at the start and complex128\[3\] after a step",
    ),
    "carry changes its containers": (
        lambda x: wg.scan(lambda c, v: ([c[0]], None), (x,), x),
        StructureError,
        r"carry is \(\*,\) at the start and \[\*\] after a step. Return the carry in the",
    ),
    "carry loses a key": (
        lambda x: wg.scan(lambda c, v: ({"a": c["a"]}, None), {"a": x, "b": None}, x),
        StructureError,
        r"carry is {'a': \*, 'b': None} at the start and {'a': \*} after a step",
    ),
    "carry becomes nothing": (
        lambda x: wg.while_loop(lambda c: c[0][0] < 9, lambda c: (c[0], None), (x, x)),
        StructureError,
        r"carry is \(\*, \*\) at the start and \(\*, None\) after a step",
    ),
    "carry becomes a word": (
        lambda x: wg.fori_loop(0, 2, lambda i, c: "no", x),
        StructureError,
        r"carry is a str after a step, and float64\[3\] at the start. Return an array",
    ),
    "carry holds a word": (
        lambda x: wg.scan(same, ("a", x), x),
        StructureError,
        r"carry at \[0\] is a str. A carry is made of arrays and numbers; capture what does",
    ),
    "step returns one": (
        lambda x: wg.scan(lambda c, v: v, x[0], x),
        StructureError,
        r"returned a \w+ instead of a pair \(carry, y\). Return \(carry, None\)",
    ),
    "step returns three": (
        lambda x: wg.scan(lambda c, v: (c, c, c), x, x),
        StructureError,
        r"a step returned 3 values instead of a pair",
    ),
    "step gives a word": (
        lambda x: wg.scan(lambda c, v: (c, {"a": "no"}), x, x),
        StructureError,
        r"scan.* returned a str.*Return arrays, numbers",
    ),
    "xs differ in length": (
        lambda x: wg.scan(same, x, (x, x[1:])),
        ShapeError,
        r"xs at \[1\] has length 2, but there are 3 steps. All of xs, and length, must agree",
    ),
    "xs are not of the length": (
        lambda x: wg.scan(same, x, x, 4),
        ShapeError,
        r"xs has length 3, but there are 4 steps",
    ),
    "xs are numbers in a list": (
        lambda x: wg.scan(same, x, [1.0, 2.0]),
        ShapeError,
        r"xs at \[0\] is a single number, and has no first axis.*np\.array\(xs\)",
    ),
    "xs are words": (
        lambda x: wg.map(first, {"a": "b"}),
        StructureError,
        r"map: xs at \['a'\] is a str, which has no first axis to loop over. Give arrays",
    ),
    "no length": (
        lambda x: wg.scan(same, x),
        StructureError,
        r"the number of steps is not given. Give xs, or length",
    ),
    "nothing to map": (
        lambda x: wg.map(first, None),
        StructureError,
        r"map: the number of steps is not given",
    ),
    "negative length": (
        lambda x: wg.scan(same, x, None, -1),
        ArgumentError,
        r"length=-1 is negative. Give a number of steps, 0 or more",
    ),
    "length is a float": (
        lambda x: wg.scan(same, x, None, 2.0),
        ArgumentError,
        r"length=2.0 is not an integer",
    ),
    "length is a boolean": (
        lambda x: wg.scan(same, x, None, True),
        ArgumentError,
        r"length=True is not an integer",
    ),
    "unroll": (
        lambda x: wg.scan(same, x, x, unroll=0),
        ArgumentError,
        r"unroll=0. Give a number of steps, 1 or more",
    ),
    "batch_size": (
        lambda x: wg.map(first, x, batch_size=0),
        ArgumentError,
        r"map: batch_size=0. Give an integer of at least 1",
    ),
    "bound is a float": (
        lambda x: wg.fori_loop(0, 2.0, lambda i, c: c, x),
        DtypeError,
        r"fori_loop: upper must be an integer, and is float64\[\].*int\(x\)",
    ),
    "bound is a float from outside": (
        lambda x: wg.fori_loop(x[0], 2, lambda i, c: c, x),
        DtypeError,
        r"fori_loop: lower must be an integer, and is float64\[\].*x\.astype\(int\)",
    ),
    "bound is an array": (
        lambda x: wg.fori_loop(0, np.arange(2), lambda i, c: c, x),
        DtypeError,
        r"upper must be an integer, and is int64\[2\]",
    ),
    "bound is nothing": (
        lambda x: wg.fori_loop(None, 2, lambda i, c: c, x),
        DtypeError,
        r"lower must be an integer, and is a NoneType",
    ),
    "condition is a number": (
        lambda x: wg.while_loop(lambda c: c[0], lambda c: c, x),
        DtypeError,
        r"while_loop: the condition is float64\[\]. It must be a single boolean: compare",
    ),
    "condition is an integer": (
        lambda x: wg.while_loop(lambda c: 1, lambda c: c, x),
        DtypeError,
        r"the condition is int64\[\]. It must be a single boolean",
    ),
    "condition is an array": (
        lambda x: wg.while_loop(lambda c: c > 1, lambda c: c, x),
        DtypeError,
        r"the condition is bool\[3\]. It must be a single boolean.*np\.any or np\.all",
    ),
    "condition is nothing": (
        lambda x: wg.while_loop(lambda c: None, lambda c: c, x),
        DtypeError,
        r"the condition is a NoneType. It must be a single boolean",
    ),
    "max_steps is negative": (
        lambda x: wg.while_loop(lambda c: True, lambda c: c, x, max_steps=-2),
        ArgumentError,
        r"while_loop: max_steps=-2 is negative",
    ),
    "no function": (
        lambda x: wg.while_loop(True, lambda c: c, x),
        ArgumentError,
        r"while_loop of True, which is not a function",
    ),
    "no branches": (
        lambda x: wg.switch(0, [], x),
        ArgumentError,
        r"switch was given no branches. Give a list of at least one function",
    ),
    "branches are a number": (
        lambda x: wg.switch(0, 3, x),
        ArgumentError,
        r"switch was given branches of type int",
    ),
    "a branch is a number": (
        lambda x: wg.switch(0, [np.sin, 3], x),
        ArgumentError,
        r"switch of 3, which is not a function",
    ),
    "index is a float": (
        lambda x: wg.switch(x[0], [np.sin, np.cos], x),
        DtypeError,
        r"switch: the selector is float64\[\]. It must be an integer",
    ),
    "index is a boolean": (
        lambda x: wg.switch(True, [np.sin, np.cos], x),
        DtypeError,
        r"switch: the selector is bool\[\]. It must be an integer",
    ),
    "pred is an array": (
        lambda x: wg.cond(x > 0, np.sin, np.cos, x),
        DtypeError,
        r"cond: the selector is bool\[3\]. It must be a boolean",
    ),
    "pred is nothing": (
        lambda x: wg.cond(None, np.sin, np.cos, x),
        DtypeError,
        r"cond: the selector is a NoneType. It must be a boolean",
    ),
    "no such axis": (
        lambda x: wg.associative_scan(np.add, x, axis=1),
        ShapeError,
        r"an element is float64\[3\], which has no axis 1",
    ),
    "elements differ in length": (
        lambda x: wg.associative_scan(np.add, (x, x[1:])),
        ShapeError,
        r"the elements have the lengths 3, 2 along axis 0",
    ),
    "elements are words": (
        lambda x: wg.associative_scan(np.add, "abc"),
        StructureError,
        r"associative_scan: an element is a str. Give arrays",
    ),
    "combined changes containers": (
        lambda x: wg.associative_scan(lambda a, b: (a, b), x),
        StructureError,
        r"the function returned \(\*, \*\) for \*. Return the same containers",
    ),
    "combined changes dtype": (
        lambda x: wg.associative_scan(np.greater, x),
        DtypeError,
        r"the element is float64\[1\] as it is given and bool\[1\] as the function returns it",
    ),
    "combined loses rows": (
        lambda x: wg.associative_scan(lambda a, b: a[:0], x),
        ShapeError,
        r"the element is float64\[1\] as it is given and float64\[0\] as the function returns",
    ),
}


@pytest.mark.parametrize("case", IN_STEPS)
def test_refused_in_every_mode(case):
    refuses(*IN_STEPS[case], X)


IN_GRAPHS = {
    "length is a value": (
        lambda x, n: wg.scan(same, x, None, n),
        DtypeError,
        r"length is a traced value.*Use fori_loop or while_loop",
    ),
    "branches of two shapes": (
        lambda x, n: wg.switch(n, [first, first, short], x),
        ShapeError,
        r"switch: branch 0 returns float64\[3\] and branch 2 float64\[2\]. Reshape one of them",
    ),
    "branches of two dtypes": (
        lambda x, n: wg.switch(n, [first, single], x),
        DtypeError,
        r"switch: branch 0 returns float64\[3\] and branch 1 float32\[3\]. Cast one of them",
    ),
    "branches of two containers": (
        lambda x, n: wg.switch(n, [first, twice], x),
        StructureError,
        r"switch: branch 0 returns \*, and branch 1 \(\*, \*\). Return the same containers",
    ),
    "a branch of nothing": (
        lambda x, n: wg.cond(n > 0, first, nothing, x),
        StructureError,
        r"cond: false_fun returns None, and true_fun \*",
    ),
    "a branch of a word": (
        lambda x, n: wg.cond(n > 0, first, lambda x: "no", x),
        StructureError,
        r"cond: false_fun returned a str. Return arrays",
    ),
    "a part of the branches": (
        lambda x, n: wg.cond(n > 0, lambda x: {"u": (x, x)}, lambda x: {"u": (x, short(x))}, x),
        ShapeError,
        r"false_fun returns float64\[2\] and true_fun float64\[3\] at \['u'\]\[1\]",
    ),
    "numbers of two dtypes": (
        lambda x, n: wg.cond(n > 0, lambda: 1, lambda: 0.0),
        DtypeError,
        r"cond: false_fun returns float64\[\] and true_fun int64\[\]",
    ),
}


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("case", IN_GRAPHS)
def test_refused_while_a_graph_is_built(case):
    refuses(*IN_GRAPHS[case], X, 2, modes=("graph", "jit"))


def test_steps_that_give_different_things():
    def growing(c, x):
        return c + 1, np.ones(c)

    refuses(
        lambda x: wg.scan(growing, 1, x),
        ShapeError,
        r"the output is float64\[1\] in the first step and float64\[2\] in another",
        X,
        modes=["eager"],
    )
    refuses(
        lambda x: wg.scan(lambda c, v: (c + 1, [v] * c), 1, x),
        StructureError,
        r"the output is \[\*\] in the first step and \[\*, \*\] in another",
        X,
        modes=["eager"],
    )
    refuses(
        lambda x: wg.scan(lambda c, v: (c, {"a": 1 if v > 0 else 1.0}), 1, x),
        DtypeError,
        r"the output at \['a'\] is float64\[\] in the first step and int64\[\] in another",
        X,
        modes=["eager"],
    )


def test_map_in_batches_of_symbolic_length():
    with pytest.raises(ArgumentError, match=r"batch_size=2 for n elements.*test_bad_input"):
        wg.trace(lambda x: wg.map(np.sin, x, batch_size=2))(wg.spec("n"))


# ---- loops that do not end ---------------------------------------------------------------------


def endless(x):
    return wg.while_loop(lambda c: c[0] > -1.0, lambda c: c + 1.0, x, max_steps=5)


def in_a_loop(x):
    return wg.scan(lambda c, v: (endless(c), v), x, X)[0]


@pytest.mark.parametrize("f", [endless, in_a_loop], ids=lambda f: f.__name__)
@pytest.mark.parametrize("way", ["eager", "graph", "simplified", "jit", "gradient", "rows"])
def test_more_than_max_steps(f, way):
    def total(x):
        return np.sum(f(x) ** 2)

    run = {
        "eager": lambda x: f(x),
        "graph": lambda x: wg.trace(f)(x)(x),
        "simplified": lambda x: wg.rewrite.simplify(wg.trace(f)(x))(x),
        "jit": lambda x: wg.jit(f)(x),
        "gradient": lambda x: wg.jit(wg.grad(total))(x),
        "rows": lambda x: wg.jit(wg.vmap(f))(np.stack([x, x])),
    }[way]
    message = r"did not end within max_steps=5 steps. Allow more steps.*test_bad_input\.py:\d+"
    with pytest.raises(GuardError, match=message):
        run(X)


def test_exactly_max_steps_are_enough():
    def f(x):
        return wg.while_loop(lambda c: c[0] < 5.0, lambda c: c + 1.0, x, max_steps=5)

    for way in (f, wg.jit(f), wg.trace(f)(X)):
        np.testing.assert_array_equal(way(X), [5.0, 6.0, 7.0])


# ---- side effects ------------------------------------------------------------------------------


def printing(x):
    return wg.scan(lambda c, v: (wg.debug.show(c, "c"), None), x[0], x)[0]


def writing(x):
    y = x * 1.0

    def step(c, v):
        y[0] = v
        return c, None

    return wg.scan(step, x[0], x)[0] + y[0]


def writing_in_a_branch(x):
    y = x * 1.0

    def put(v):
        y[0] = v
        return v

    return wg.cond(x[1] > 0.0, put, lambda v: v, x[0]) + y[0]


stream = wg.random.Stream(0)
weight = wg.tensor(np.ones(3), requires_grad=True)
known = wg.tensor(np.ones(3))


def drawing(x):
    return wg.fori_loop(0, 3, lambda i, c: c + stream.normal(), x[0])


def going_back(x):
    def step(i, c):
        np.sum(weight * c).backward()
        return c

    return wg.fori_loop(0, 3, step, x[0])


def writing_to_what_is_known(x):
    def step(i, c):
        known[0] = c
        return c

    return wg.fori_loop(0, 3, step, x[0])


def writing_to_a_parameter(x):
    def step(i, c):
        weight[...] = weight * 2.0
        return c

    return wg.fori_loop(0, 3, step, x[0])


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (printing, r"scan: it prints, checks or has another side effect \(debug_show\)"),
        (writing, r"scan: it writes to a captured tensor.*Carry the value"),
        (writing_in_a_branch, r"cond: true_fun: it writes to a captured tensor"),
        (drawing, r"fori_loop: it writes .* or draws from a random stream.*draw before the loop"),
        (going_back, r"backward\(\) of float64\[\].*wengert\.grad\(loss\)"),
        (writing_to_what_is_known, r"it writes to a captured tensor"),
        (writing_to_a_parameter, r"writes to a captured tensor"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_side_effects_in_bodies(f, message):
    refuses(f, TraceError, message, X, modes=["graph", "jit"])
    assert weight.grad is None
    np.testing.assert_array_equal(weight.numpy(), np.ones(3))


generator = np.random.default_rng(0)


def test_numbers_of_numpys_generators():
    """They would be drawn once, while the graph is built, also in functions inside of functions."""

    def f(x):
        return wg.fori_loop(0, 3, lambda i, c: c + generator.normal(), x[0])

    refuses(f, TraceError, r"f draws random numbers \(Generator\)", X, modes=["jit"])


@pytest.mark.usefixtures("unconverted")
def test_branching_and_reading_in_bodies():
    def branching(x):
        return wg.fori_loop(0, 3, lambda i, c: c if c > 0.0 else -c, x[0])

    def reading(x):
        return wg.fori_loop(0, 3, lambda i, c: float(c) * 2.0, x[0])

    refuses(branching, TracedBranchError, "branch on greater", X, modes=["graph", "jit"])
    refuses(reading, TraceError, r"float\(x\) of float64\[\]", X, modes=["graph", "jit"])


# ---- tensors that leave a body -----------------------------------------------------------------

kept = []


def keeping(x):
    def step(c, v):
        kept.append(c * 2.0)
        return c * 1.1, v

    return wg.scan(step, x[0], x)[0]


LEAKS = {
    "after the loop": lambda x: keeping(x) + kept[-1],
    "in another loop": lambda x: keeping(x) + wg.fori_loop(0, 2, lambda i, c: c * kept[-1], x[0]),
    "in a branch": lambda x: wg.cond(keeping(x) > 0.0, lambda: kept[-1] * 1.0, lambda: 0.0),
    "as it is": lambda x: (keeping(x), kept[-1]),
    "from a loop in a loop": lambda x: wg.fori_loop(
        0, 2, lambda i, c: c + keeping(x) + kept[-1], x[0]
    ),
}


@pytest.mark.parametrize("case", LEAKS)
def test_a_tensor_of_a_body_used_outside(case):
    kept.clear()
    message = r"uses a tensor that was stored while the body of \w+ was traced.*part of the carry"
    refuses(LEAKS[case], GraphError, message, X, modes=["graph", "jit"])


def test_a_tensor_of_a_body_used_when_all_is_over():
    kept.clear()
    wg.jit(keeping)(X)
    leaked = kept[0]
    message = r"stored while the body of scan was traced.*test_bad_input\.py"
    for use in (
        lambda: float(leaked + 1.0),
        lambda: bool(leaked > 0.0),
        lambda: np.asarray(leaked * 2.0),
        lambda: (leaked + 1.0).item(),
    ):
        with pytest.raises(TraceError, match=message):
            use()
    with pytest.raises(GraphError, match=message):
        wg.jit(lambda x: x * leaked)(1.0)
    with pytest.raises(GraphError, match=message):
        wg.trace(lambda x: np.sum(x) + leaked)(X)


def test_a_body_that_fails_leaves_nothing_behind():
    kept.clear()

    def step(c, v):
        kept.append(c)
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            wg.jit(lambda x: wg.scan(step, x[0], x)[0])(X)
    assert wg.jit(lambda x: wg.scan(same, x[0], x)[0])(X) == 0.0
    with pytest.raises(TraceError, match="stored while the body of scan"):
        float(kept[0])
