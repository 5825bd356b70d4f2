"""Random programs with loops and branches, as text of Python functions.

    written    the text of a program: a function f(x, s, A, k) of a vector, a number, a matrix and a
               integer, which returns one number
    check      eager steps, the interpreter, the simplified graph and native code give the same
               value, derivative and second derivative, in both modes, and for batches

A program is statements: names for expressions, writes to elements, and loops and branches whose
bodies are statements again, down to three levels; bodies use what is around them.  Some loops, of
known and of unknown length, have memory for few states (`memory=`).  All is smooth
and squashed, so that values stay moderate and a derivative exists.  Eager steps are Python's own,
and their derivative that of the tape without any loop in it: the reference.
"""

import numpy as np

import wengert as wg

SIZE = 3
HEAD = "def f(x, s, A, k):"


class Writer:
    """Text under construction: lines, and the names known so far by kind."""

    def __init__(self, rng, rooms):
        self.rng, self.rooms, self.lines, self.count = rng, rooms, [HEAD], 0
        self.batched = False  # whether plain arrays from outside may not be copied and written to

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def put(self, depth, text):
        self.lines.append("    " * (depth + 1) + text)

    def chance(self, p):
        return self.rng.random() < p

    def among(self, *items):
        return items[self.rng.integers(len(items))]

    def room(self):
        """An argument `memory=`, or none."""
        texts = ["", "", ", memory=1", ", memory=2", ", memory=3", ", memory='1 kB'"]
        return texts[self.rooms.integers(len(texts))]


class Names:
    """Names in sight: numbers S, vectors V, matrices M, integers I; and which are own."""

    def __init__(self, around=None):
        self.kinds = {k: list(v) for k, v in around.kinds.items()} if around else {}
        self.own = []

    def add(self, kind, name, own=True):
        self.kinds.setdefault(kind, []).append(name)
        if own:
            self.own.append((kind, name))
        return name


def _pick(w, names, kind):
    """A name, one of the last most often."""
    found = names.kinds.get(kind) or ["0.7"]
    return found[-1 - min(int(w.rng.geometric(0.4)) - 1, len(found) - 1)]


def expression(w, names, kind, depth=2):
    """An expression of a kind."""
    if depth == 0 or w.chance(0.15):
        if kind == "S" and w.chance(0.1):
            return f"{w.rng.uniform(-1, 1):.2f}"
        return _pick(w, names, kind)

    def part(kind):
        return expression(w, names, kind, depth - 1)

    index = w.among("0", "-1", "1", f"{_pick(w, names, 'I')} % {SIZE}")
    index = "0" if w.batched else index  # plain arrays take no index that is not known
    if kind == "S":
        return w.among(
            lambda: f"np.tanh({part('S')})",
            lambda: f"np.sin({part('S')})",
            lambda: f"({part('S')} * {part('S')})",
            lambda: f"({part('S')} + {part('S')})",
            lambda: f"({part('S')} - 0.3 * {part('S')})",
            lambda: f"({part('S')} / (1.5 + {part('S')} ** 2))",
            lambda: f"{_pick(w, names, 'V')}[{index}]",
            lambda: f"{_pick(w, names, 'M')}[{index}, 1]",
            lambda: f"np.sum({part('V')}) * 0.3",
            lambda: f"({part('V')} @ {part('V')}) * 0.2",
            lambda: f"np.where({part('S')} > 0.1, {part('S')}, {part('S')})",
            lambda: f"({part('S')} * 0.2 * {_pick(w, names, 'I')})",
        )()
    if kind == "V":
        return w.among(
            lambda: f"np.tanh({part('V')})",
            lambda: f"np.cos({part('V')})",
            lambda: f"({part('M')} @ {part('V')}) * 0.4",
            lambda: f"({part('V')} * {part('S')})",
            lambda: f"({part('V')} + {part('V')})",
            lambda: f"({part('V')} * {part('V')})",
            lambda: f"np.where({part('V')} > {part('S')}, {part('V')}, {part('V')})",
            lambda: f"{_pick(w, names, 'V')}[::-1]",
            lambda: f"np.cumsum({part('V')}) * 0.4",
            lambda: f"{_pick(w, names, 'M')}[{index}]",
            lambda: f"{_pick(w, names, 'M')}.sum({w.among(0, 1)}) * 0.3",
            lambda: f"np.exp(-({part('V')} ** 2))",
        )()
    return w.among(
        lambda: f"np.tanh({part('M')})",
        lambda: f"({part('M')} @ {part('M')}) * 0.2",
        lambda: f"np.outer({part('V')}, {part('V')}) * 0.3",
        lambda: f"({part('M')} * {part('S')})",
        lambda: f"({part('M')} + {part('V')})",
        lambda: f"{_pick(w, names, 'M')}.T",
    )()


def squashed(w, names, kind):
    """An expression whose value is below two."""
    text = expression(w, names, kind)
    return f"np.tanh({text})" if w.chance(0.6) else f"np.sin({text}) * 1.3"


def statements(w, names, depth, level, count):
    """Some statements; `level` says how many loops are around."""
    for _ in range(count):
        kinds = ["name", "name", "write"]
        if level < 3:
            kinds += ["scan", "scan", "fori", "while", "cond", "switch"]
            kinds += ["map", "prefix"] if level < 2 else []
        WRITERS[w.among(*kinds)](w, names, depth, level)


def _name(w, names, depth, level):
    kind = w.among("S", "S", "V", "V", "M")
    text = squashed(w, names, kind)
    w.put(depth, f"{names.add(kind, w.name())} = {text}")


def _write(w, names, depth, level):
    own = [(k, n) for k, n in names.own if k in "VM"]
    index = w.among("0", "2", f"{_pick(w, names, 'I')} % {SIZE}", "1:", "::2")
    if w.batched and not own:
        return
    if not own or (w.chance(0.3) and not w.batched):
        kind = w.among("V", "M")
        source = _pick(w, names, kind)
        target = w.name()
        w.put(depth, f"{target} = {source}.copy()")
        names.add(kind, target)
    else:
        kind, target = own[w.rng.integers(len(own))]
    scalar = kind == "V" or ":" in index
    value = squashed(w, names, "S" if scalar else "V")
    w.put(depth, f"{target}[{index}] {w.among('=', '=', '+=')} {value}")


def _carry(w, names, least=1):
    kinds = [w.among("S", "S", "V", "V", "M") for _ in range(int(w.rng.integers(least, 4)))]
    return kinds, [squashed(w, names, k) for k in kinds]


def _tuple(items):
    return f"({', '.join(items)},)" if len(items) == 1 else f"({', '.join(items)})"


def _body(w, names, depth, level, parameters, first, known):
    """The head and some statements of a function; returns its name and the names in sight.

    parameters : text; first : lines of text; known : pairs of a kind and a name.
    """
    inner, body = Names(names), w.name()
    w.put(depth, f"def {body}({parameters}):")
    for line in first:
        w.put(depth + 1, line)
    for kind, n in known:
        inner.add(kind, n, own=kind != "I")
    statements(w, inner, depth + 1, level + 1, int(w.rng.integers(0, 3)))
    return body, inner


def _results(w, inner, kinds):
    return [squashed(w, inner, k) if w.chance(0.85) else _pick(w, inner, k) for k in kinds]


def _take(w, names, depth, kinds, call):
    out = w.name()
    w.put(depth, f"{out} = {call}")
    for k, kind in enumerate(kinds):
        w.put(depth, f"{names.add(kind, w.name())} = {out}[{k}]")


def _scan(w, names, depth, level):
    kinds, starts = _carry(w, names, 0 if w.chance(0.1) else 1)
    along = w.among("none", "V", "M", "both")
    count = "None" if along != "none" else f"{w.rng.integers(0, 5)}"
    v, m = squashed(w, names, "V"), squashed(w, names, "M")
    rows = {"none": "None", "V": v, "M": m, "both": f"({v}, {m})"}[along]
    x, carried = w.name(), [w.name() for _ in kinds]
    given = {"none": [], "V": [("S", x)], "M": [("V", x)], "both": [("S", x + "a"), ("V", x + "b")]}
    first = [f"{x}a, {x}b = {x}"] * (along == "both") + [f"{_tuple(carried)} = c"] * bool(kinds)
    known = [*given[along], *zip(kinds, carried, strict=True)]
    body, inner = _body(w, names, depth, level, f"c, {x}", first, known)
    ys = [w.among("S", "V") for _ in range(int(w.rng.integers(0, 3)))]
    collected = _tuple(_results(w, inner, ys)) if ys else "None"
    ends = _tuple(_results(w, inner, kinds)) if kinds else "c"
    w.put(depth + 1, f"return {ends}, {collected}")
    out, outs, start = w.name(), w.name(), _tuple(starts) if starts else "()"
    options = f"reverse={w.among(True, False)}{w.room()}"
    w.put(depth, f"{out}, {outs} = wg.scan({body}, {start}, {rows}, {count}, {options})")
    for k, kind in enumerate(kinds):
        w.put(depth, f"{names.add(kind, w.name())} = {out}[{k}]")
    for k, kind in enumerate(ys):
        if along != "none" and w.chance(0.5):
            up = "V" if kind == "S" else "M"
            w.put(depth, f"{names.add(up, w.name())} = {outs}[{k}]")
        else:
            w.put(depth, f"{names.add(kind, w.name())} = {outs}[{k}].sum(0) * 0.4")


def _fori(w, names, depth, level):
    kinds, starts = _carry(w, names)
    i, carried = w.name(), [w.name() for _ in kinds]
    known = [("I", i), *zip(kinds, carried, strict=True)]
    first = [f"{_tuple(carried)} = c"]
    body, inner = _body(w, names, depth, level, f"{i}, c", first, known)
    w.put(depth + 1, f"return {_tuple(_results(w, inner, kinds))}")
    low, high = w.among("0", "1", "k"), w.among("0", "3", "4", "k", "k + 2")
    _take(
        w, names, depth, kinds, f"wg.fori_loop({low}, {high}, {body}, {_tuple(starts)}{w.room()})"
    )


def _while(w, names, depth, level):
    kinds, starts = _carry(w, names)
    limit = w.among("0", "2", "4", "k", "k + 1")
    n, carried = w.name(), [w.name() for _ in kinds]
    known = [("I", n), *zip(kinds, carried, strict=True)]
    first = [f"{_tuple([*carried, n])} = c"]
    body, inner = _body(w, names, depth, level, "c", first, known)
    w.put(depth + 1, f"return {_tuple([*_results(w, inner, kinds), f'{n} + 1'])}")
    far = {"S": "c[0] < 1.1", "V": "np.sum(c[0]) < 2.5", "M": "np.sum(c[0]) < 4.0"}[kinds[0]]
    test = f"lambda c: (c[{len(kinds)}] < {limit}) & ({far})"
    call = f"wg.while_loop({test}, {body}, {_tuple([*starts, '0'])}{w.room()})"
    _take(w, names, depth, kinds, call)


def _choice(w, names, depth, level, count):
    """Functions to choose from; returns the kinds of their results, names, and operands."""
    kinds = [w.among("S", "V", "M") for _ in range(int(w.rng.integers(1, 3)))]
    given, texts = _carry(w, names)
    made = []
    for _ in range(count):
        taken = [w.name() for _ in given]
        known = list(zip(given, taken, strict=True))
        body, inner = _body(w, names, depth, level, ", ".join(taken), [], known)
        w.put(depth + 1, f"return {_tuple(_results(w, inner, kinds))}")
        made.append(body)
    return kinds, made, ", ".join(texts)


def _cond(w, names, depth, level):
    kinds, (a, b), operands = _choice(w, names, depth, level, 2)
    test = f"{expression(w, names, 'S')} > {w.rng.uniform(-0.3, 0.5):.2f}"
    if w.chance(0.3):
        test = f"{_pick(w, names, 'I')} > 1"
    _take(w, names, depth, kinds, f"wg.cond({test}, {a}, {b}, {operands})")


def _switch(w, names, depth, level):
    kinds, made, operands = _choice(w, names, depth, level, 3)
    index = w.among("k", "k - 1", f"{_pick(w, names, 'I')} % 3")
    _take(w, names, depth, kinds, f"wg.switch({index}, [{', '.join(made)}], {operands})")


def _map(w, names, depth, level):
    kind, size = w.among("S", "V"), w.among("", "", ", batch_size=2")
    source = squashed(w, names, "V" if kind == "S" else "M")
    x, around = w.name(), w.batched
    w.batched = around or bool(size)
    body, inner = _body(w, names, depth, level, x, [], [(kind, x)])
    w.batched = around
    w.put(depth + 1, f"return {squashed(w, inner, kind)}")
    made = names.add("V" if kind == "S" else "M", w.name())
    w.put(depth, f"{made} = wg.map({body}, {source}{size})")


def _prefix(w, names, depth, level):
    kind = w.among("V", "M")
    fn = w.among("lambda a, b: a + b", "lambda a, b: a * b", "lambda a, b: a + b + 0.3 * a * b")
    elements, options = squashed(w, names, kind), f"reverse={w.among(True, False)}"
    made, axis = names.add(kind, w.name()), w.among(0, -1)
    call = f"wg.associative_scan({fn}, {elements}, {options}, axis={axis})"
    w.put(depth, f"{made} = np.tanh({call})")


WRITERS = {
    "name": _name,
    "write": _write,
    "scan": _scan,
    "fori": _fori,
    "while": _while,
    "cond": _cond,
    "switch": _switch,
    "map": _map,
    "prefix": _prefix,
}


def written(seed, most=4):
    """The text of a program, of at most so many statements outside of loops."""
    w, names = Writer(np.random.default_rng([seed, 5]), np.random.default_rng([seed, 6])), Names()
    for kind, name in [("M", "A"), ("V", "x"), ("S", "s"), ("I", "k")]:
        names.add(kind, name, own=False)
    statements(w, names, 0, 0, int(w.rng.integers(2, most + 1)))
    terms = [f"np.sum({_pick(w, names, kind)})" for kind in "SVM"]
    last = [f"np.sum({n})" for kind, n in names.own[-3:] if kind in "SVM"]
    w.put(0, "return " + " + ".join(dict.fromkeys([*terms, *last])))
    return "\n".join(w.lines)


def compiled(text):
    """The function that a text defines."""
    known = {"np": np, "wg": wg}
    exec(compile(text, "<random loops>", "exec"), known)
    return known["f"]


def inputs(seed, rows=None):
    """Operands of a program: x, s, A, k."""
    rng = np.random.default_rng([seed, 7])
    front = () if rows is None else (rows,)
    x, s = rng.uniform(-1, 1, (*front, SIZE)), rng.uniform(-1, 1, front)
    k = rng.integers(0, 4, front)
    return x, s if rows else np.float64(s), rng.uniform(-1, 1, (*front, SIZE, SIZE)), k


RTOL = 1e-8  # of second derivatives through some fifty squashed steps


def modes(f, k, along):
    """What is compared: values and first derivatives; second ones along a direction, by all modes.

    The first three of these are the same vector, the last is its product with the direction.
    """

    def first(x, s, A):
        return f(x, s, A, k)

    def slope(x, s, A):
        return wg.jvp(first, (x, s, A), along)[1]

    def back(x, s, A):
        g = wg.grad(first, (0, 1, 2))(x, s, A)
        return sum(np.sum(a * b) for a, b in zip(g, along, strict=True))

    both = (0, 1, 2)

    def value_and_gradient(x, s, A):
        return first(x, s, A), wg.grad(first, both)(x, s, A), slope(x, s, A)

    def back_over_back(x, s, A):
        return wg.grad(back, both)(x, s, A)

    def back_over_forward(x, s, A):
        return wg.grad(slope, both)(x, s, A)

    def forward_over_back(x, s, A):
        return wg.jvp(wg.grad(first, both), (x, s, A), along)[1]

    def forward_over_forward(x, s, A):
        return wg.jvp(slope, (x, s, A), along)[1]

    return value_and_gradient, (
        back_over_back,
        back_over_forward,
        forward_over_back,
        forward_over_forward,
    )


# What is said of a program that writes what is recorded, or traced, into a plain array of numbers
# known before: where all is a graph that array is a tensor, elsewhere the user makes it one.
PLAIN = ("setting an array element", "names a plain array", "cannot be converted to a plain array")


def assert_same(found, wanted, what):
    """Require equal containers of arrays that agree."""
    a, b = flattened(found), flattened(wanted)
    assert len(a) == len(b), what
    for p, q in zip(a, b, strict=True):
        assert np.shape(p) == np.shape(q), what
        assert np.asarray(p).dtype == np.asarray(q).dtype, what
        np.testing.assert_allclose(p, q, RTOL, RTOL, err_msg=what)


def flattened(x):
    return [leaf for part in x for leaf in flattened(part)] if isinstance(x, tuple) else [x]


def check(seed, most=4, native=True, second=True, many=True):
    """Compare all ways of running a program; `second` derivatives and `many` rows, if so.

    Returns whether it could be: that eager steps can run it.
    """
    text = written(seed, most)
    f, args = compiled(text), inputs(seed)
    *points, k = args
    rng = np.random.default_rng([seed, 9])
    along = (rng.normal(size=SIZE), np.float64(rng.normal()), rng.normal(size=(SIZE, SIZE)))

    def told(what):
        return f"seed {seed}, {what}:\n{text}"

    def in_graphs(make, wanted, what):
        graph = wg.trace(make)(*args)
        assert_same(graph(*args), wanted, told(f"{what}, graph"))
        assert_same(wg.rewrite.simplify(graph)(*args), wanted, told(f"{what}, simplified"))
        if native:
            assert_same(wg.jit(make)(*args), wanted, told(f"{what}, native"))

    def first(x, s, A, k):
        return modes(f, k, along)[0](x, s, A)

    try:
        wanted = modes(f, int(k), along)[0](*points)
        if many:
            wg.vmap(f)(*inputs(seed, rows=4))
    except (ValueError, TypeError) as error:
        if not any(text in str(error) for text in PLAIN):
            raise
        return False
    in_graphs(first, wanted, "value and gradient")
    if second:
        _check_second(f, args, along, in_graphs, told)
    if many:
        _check_rows(f, inputs(seed, rows=4), told)
    return True


def _check_second(f, args, along, in_graphs, told):
    *points, k = args
    eager = [mode(*points) for mode in modes(f, int(k), along)[1]]
    for i, found in enumerate(eager):
        if i < 3:
            assert_same(found, eager[0], told(f"second derivative {i}, eager"))

        def graphed(x, s, A, k, i=i):
            return modes(f, k, along)[1][i](x, s, A)

        in_graphs(graphed, found, f"second derivative {i}")


def _check_rows(f, rows, told):
    values = np.stack([f(*row) for row in zip(*rows, strict=True)])
    assert_same(wg.vmap(f)(*rows), values, told("a batch"))
    gradient = wg.grad(f, (0, 1, 2))
    each = [gradient(*row) for row in zip(*rows, strict=True)]
    wanted = tuple(np.stack(column) for column in zip(*each, strict=True))
    assert_same(wg.vmap(gradient)(*rows), wanted, told("gradients of a batch"))
