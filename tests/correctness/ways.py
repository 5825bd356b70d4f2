"""Ways: one derivative in all the ways that wengert can compute it.

    gradients   reverse, forward, rows of `vmap`, the graph by the interpreter and by native code
    hessians    all four mixtures of two modes, the graph, native code; rows of `vmap` too
    everywhere  asks all of them for a stated answer, float32 and float64

A function is of arrays and its result one real number.  Answers are stated by the test, from the
mathematics; nothing here compares one way with another without a stated answer, but second
derivatives where none is given: these have to be finite, and the same in all ways.
"""

import numpy as np

import wengert as wg

DIGITS = {np.float64: 1e-12, np.float32: 2e-5}


def forward(f, n):
    """The gradient with respect to all `n` arguments in forward mode, one pass per element."""

    def gradient(*xs):
        found = []
        for i in range(n):
            units = np.eye(xs[i].size, dtype=xs[i].dtype).reshape(xs[i].size, *xs[i].shape)
            zeros = [np.zeros(x.shape, x.dtype) for x in xs]
            slopes = [wg.jvp(f, xs, (*zeros[:i], unit, *zeros[i + 1 :]))[1] for unit in units]
            found.append(
                wg.numpy.stack(slopes).reshape(xs[i].shape).astype(xs[i].dtype)
                if slopes
                else zeros[i]
            )
        return tuple(found)

    return gradient


def forward_of_rows(f, n):
    """As `forward`, all directions as rows of `vmap`: a graph of one derivative."""

    def gradient(*xs):
        found = []
        for i in range(n):
            units = np.eye(xs[i].size, dtype=xs[i].dtype).reshape(xs[i].size, *xs[i].shape)
            zeros = [np.zeros(x.shape, x.dtype) for x in xs]

            def slope(unit, i=i, zeros=zeros):
                return wg.jvp(f, xs, (*zeros[:i], unit, *zeros[i + 1 :]))[1]

            found.append(wg.vmap(slope)(units).reshape(xs[i].shape).astype(xs[i].dtype))
        return tuple(found)

    return gradient


def rows_of(derivative):
    """The first row of `vmap`; the second, of other numbers, must not disturb it."""

    def first(*xs):
        many = [wg.numpy.stack([x, x]) for x in xs]
        return tuple(g[0] for g in wg.vmap(derivative)(*many))

    return first


def compiled(derivatives, xs, interpreted=True):
    """Several derivatives of a program as one graph, interpreted and, simplified, native."""

    def all_of_them(*xs):
        return tuple(d(*xs) for d in derivatives)

    # No yield stands inside of errstate, which would hold for the caller too.
    if interpreted:
        with np.errstate(all="ignore"):
            values = wg.trace(all_of_them)(*xs)(*xs)
        yield "interpreted", values
    with np.errstate(all="ignore"):
        values = wg.jit(all_of_them)(*xs)
    yield "native", values


def gradients(f, xs, graphs=True):
    """Pairs of a name and the gradients with respect to all arguments."""
    n = len(xs)
    reverse = wg.grad(f, tuple(range(n)))
    derivatives = {"reverse": reverse, "forward": forward(f, n)}
    if graphs:
        derivatives["rows"] = rows_of(reverse)
    for name, derivative in derivatives.items():
        yield name, derivative(*xs)
    wide = xs[0].dtype == np.float64
    if graphs and all(x.size for x in xs):
        derivatives["forward"] = forward_of_rows(f, n)
    if not wide:  # what is different in single precision is different in native code
        del derivatives["forward"]
    for way, found in compiled(derivatives.values(), xs, wide) if graphs else ():
        for name, g in zip(derivatives, found, strict=True):
            yield f"{name}, {way}", g


def hessians(f, x, graphs=True):
    """Pairs of a name and the matrix of second derivatives with respect to the only argument."""
    derivatives = {
        "forward over reverse": wg.jacfwd(wg.grad(f)),
        "reverse over reverse": wg.jacrev(wg.grad(f)),
        "forward over forward": wg.jacfwd(lambda x: forward(f, 1)(x)[0]),
        "reverse over forward": wg.jacrev(lambda x: forward(f, 1)(x)[0]),
    }
    for name, derivative in derivatives.items():
        yield name, derivative(x)
    few = ["forward over reverse"]
    for way, found in compiled([derivatives[name] for name in few], [x]) if graphs else ():
        for name, h in zip(few, found, strict=True):
            yield f"{name}, {way}", h


def agrees(found, want, digits, name):
    """Require a stated answer; where it is infinite or NaN, exactly that."""
    assert found.shape == np.shape(want), (name, found.shape, np.shape(want))
    close = np.allclose(found, want, rtol=digits, atol=digits, equal_nan=True)
    assert close, f"{name}: {found!r}, and not {want!r}"


def everywhere(
    f, *xs, gradient, hessian=None, orders=2, dtypes=(np.float64, np.float32), graphs=True
):
    """Require a gradient (a tuple of them for several arguments) and a Hessian in all ways.

    Hessians are in double precision only. `graphs` is False where a graph refuses the program: the
    shape of something depends on values.
    """
    want = gradient if isinstance(gradient, tuple) else (gradient,)
    for dtype in dtypes:
        here = tuple(np.asarray(x, dtype) for x in xs)
        digits = DIGITS[dtype]
        with np.errstate(all="ignore"):
            for name, found in gradients(f, here, graphs):
                for g, w in zip(found, want, strict=True):
                    assert g.dtype == dtype, (name, g.dtype)
                    agrees(np.asarray(g), w, digits, f"{name} in {dtype.__name__}")
        if orders < 2 or len(xs) > 1 or dtype != np.float64:
            continue
        with np.errstate(all="ignore"):
            second = list(hessians(f, here[0], graphs))
        if hessian is None:
            hessian = second[0][1]
            assert np.isfinite(hessian).all(), f"{second[0][0]}: {hessian!r}"
        for name, h in second:
            assert h.dtype == dtype, (name, h.dtype)
            agrees(np.asarray(h), hessian, 10 * digits, f"{name} in {dtype.__name__}")


def case(f, *xs, **options):
    """An entry of a table of cases: what `everywhere` is to be called with."""
    return f, xs, options


def check(entry):
    """Check an entry of a table of cases."""
    f, xs, options = entry
    everywhere(f, *xs, **options)
