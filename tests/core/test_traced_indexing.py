"""Indexing and assignment while a graph is built do what they do in NumPy, and differentiate.

Each program is run on plain arrays, which is the meaning, then traced with numbers and with names
for its lengths; the gradient of its result is compared with the eager one.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ShapeError, TraceError, WengertError

MASK = np.array([True, False, True, True, False, False])
X = np.array([0.3, -1.2, 2.0, 0.7, -0.4, 1.1])


def own(x):
    """A copy to write to: the caller's array stays what it is."""
    return x * 1.0


def assigned(x):
    y = own(x)
    y[0] = 5.0
    y[-1] = y[0] * y[1]
    return y


def through_a_view(x):
    y = own(x)
    part = y[1:4]
    part += 1.0
    part[0] = y[0] * part[1]
    return y


def seen_by_a_view(x):
    y = own(x)
    part = y[::2]
    y[0] = 7.0 * x[1]
    return part * y[0]


def view_of_a_view(x):
    y = own(x)
    part = y[1:][::2]
    part *= x[0]
    return y


def reversed_view(x):
    y = own(x)
    y[::-1][1] = 3.0 * x[2]
    return y


def through_axes(x):
    y = np.stack([own(x), x * x])
    y.T[1] = x[0]
    y[:, 2] *= 2.0
    y[1][0] += 4.0
    return y


def single_number(x):
    y = own(x)
    number = y[2]
    number += 1.0
    return y * number


def zero_dimensional_view(x):
    y = own(x)
    one = y[2, ...]
    one += 1.0
    return y


def copied_by_an_array(x):
    y = own(x)
    part = y[np.array([0, 2, 0])]
    part += 1.0
    return y * np.sum(part)


def duplicates(x):
    y = own(x)
    y[np.array([1, 1, 3])] = x[np.array([0, 2, 4])]
    return y


def known_mask(x):
    return x[:6][MASK] * 2.0


def known_mask_written(x):
    y = own(x)
    y[:6][MASK] = 0.5 * x[0]
    return y


def unknown_mask_written(x):
    y = own(x)
    y[y > 0.5] = x[1]
    y[x < 0] = 0.25
    return y


def rows(x):
    y = np.outer(x, x)
    y[0] = y[1]
    y[1:3] = x
    y[:, None, -1][0] = 1.0
    return y[..., 0] + y[2]


def moving(x):
    y = own(x)
    i = np.argmax(x)
    y[i] = 0.0
    return y * x[i]


def loop(x):
    y = np.zeros(6) * x[0]
    for i in range(1, 6):
        y[i] = 0.5 * y[i - 1] + x[i]
    return y


PROGRAMS = [
    assigned,
    through_a_view,
    seen_by_a_view,
    view_of_a_view,
    reversed_view,
    through_axes,
    single_number,
    zero_dimensional_view,
    copied_by_an_array,
    duplicates,
    known_mask,
    known_mask_written,
    unknown_mask_written,
    rows,
    moving,
    loop,
]


def loss(program):
    def f(x):
        y = program(x)
        weights = np.sin(1.0 + np.arange(np.size(y))).reshape(np.shape(y))
        return np.sum(weights * y * y)

    return f


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_traced_program_is_the_program(program):
    want = program(X.copy())
    graph = wg.trace(program)(X)
    graph.verify()
    np.testing.assert_array_equal(graph(X), want)
    np.testing.assert_allclose(
        wg.trace(wg.grad(loss(program)))(X)(X), wg.grad(loss(program))(X), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_traced_program_with_a_name_for_its_length(program):
    n = wg.spec("n")
    graph = wg.trace(program)(n)
    # loss() asks for numbers of elements that only a graph for numbers knows
    gradient = wg.trace(wg.grad(lambda x: np.sum(program(x) ** 2)))(n)
    for x in (X, np.concatenate([X, [0.9, -0.2]])):
        try:
            want = program(x.copy())
        except (ValueError, IndexError):
            continue
        np.testing.assert_array_equal(graph(x), want)
        np.testing.assert_allclose(
            gradient(x),
            wg.grad(lambda y: np.sum(program(y) ** 2))(x),
            rtol=1e-12,
            atol=1e-14,
        )


def test_slices_demand_their_length():
    graph = wg.trace(lambda x: x[2:5])(wg.spec("n"))
    assert graph.outputs[0].spec.shape == (3,)
    np.testing.assert_array_equal(graph(np.arange(5.0)), [2.0, 3.0, 4.0])
    with pytest.raises(ShapeError, match="2:5"):
        graph(np.arange(4.0))


@pytest.mark.parametrize(
    "index",
    [
        np.s_[1:],
        np.s_[:-1],
        np.s_[-3:-1],
        np.s_[::2],
        np.s_[1::2],
        np.s_[::-1],
        np.s_[::-3],
        np.s_[4:1:-1],
        np.s_[-2::-2],
        np.s_[:2:-1],
        np.s_[3],
        np.s_[-2],
        np.s_[None, 1:],
        np.s_[..., 0],
        np.s_[2:2],
    ],
    ids=str,
)
def test_lengths_of_slices(index):
    graph = wg.trace(lambda x: x[index])(wg.spec("n"))
    graph.verify()
    for k in (5, 6, 9):
        x = np.arange(float(k))
        np.testing.assert_array_equal(graph(x), x[index])


def test_slices_bounded_by_sizes():
    graph = wg.trace(lambda x, y: x[: y.shape[0]] * y + x[x.shape[0] - y.shape[0] :])(
        wg.spec("n"), wg.spec("m")
    )
    x, y = np.arange(5.0), np.arange(3.0)
    np.testing.assert_array_equal(graph(x, y), x[:3] * y + x[2:])
    with pytest.raises(ShapeError):
        graph(y, x)


def test_a_value_of_another_name_demands_the_length():
    def f(x, y):
        z = x * 1.0
        z[1:] = y
        return np.sum(z * z * x)

    graph = wg.trace(wg.grad(f, (0, 1)))(wg.spec("n"), wg.spec("m"))
    x, y = np.arange(1.0, 5.0), np.array([2.0, -1.0, 3.0])
    for got, want in zip(graph(x, y), wg.grad(f, (0, 1))(x, y), strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ShapeError, match="assigned to shape"):
        graph(x, np.ones(2))


def test_numpy_numbers_in_an_index_are_numbers():
    graph = wg.trace(lambda x: x[np.int64(1) : np.int32(3)] + x[np.int64(0)])(wg.spec("n"))
    same = wg.trace(lambda x: x[1:3] + x[0])(wg.spec("n"))
    assert [n.params for n in graph.nodes] == [n.params for n in same.nodes]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda x: x[x > 0], r"np\.where"),
        (lambda x: np.nonzero(x)[0], r"np\.where"),
        (lambda x: x[: np.argmax(x)], "slice"),
    ],
)
def test_what_depends_on_values_is_refused(program, words):
    with pytest.raises(TraceError, match=words):
        wg.trace(program)(X)


def test_an_index_beyond_the_end_is_refused():
    with pytest.raises(IndexError):
        wg.trace(lambda x: x[6])(X)
    with pytest.raises(WengertError):
        wg.trace(lambda x: x[6])(wg.spec("n"))(X)


def test_writing_to_a_broadcast_is_refused():
    def f(x):
        y = np.broadcast_to(x, (2, 6))
        y[0] = 1.0
        return y

    with pytest.raises(ValueError, match="read-only"):
        wg.trace(f)(X)
