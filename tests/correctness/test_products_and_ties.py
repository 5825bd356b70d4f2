"""Products with zeros; ties among equal elements.

The derivative of a product by a factor is the product of the others, whatever is zero: 6 for the
middle one of 2 * 0 * 3.  Ties: the mean of the one-sided derivatives, shared evenly (docs/
conventions.md, 2), but sorting and selection follow the permutation that NumPy chose: what has to
hold there is that the gradient is that of *a* choice, each element chosen once.
"""

import numpy as np
import pytest

import wengert as wg

from .ways import case, check, everywhere, gradients

PRODUCTS = {
    "no zero": case(np.prod, [2.0, 5.0, 3.0], gradient=[15, 6, 10]),
    "one zero": case(
        np.prod, [2.0, 0.0, 3.0], gradient=[0, 6, 0], hessian=[[0, 3, 0], [3, 0, 2], [0, 2, 0]]
    ),
    "two zeros": case(
        np.prod, [0.0, 0.0, 3.0], gradient=[0, 0, 0], hessian=[[0, 3, 0], [3, 0, 0], [0, 0, 0]]
    ),
    "three zeros": case(np.prod, [0.0, 0.0, 0.0], gradient=[0, 0, 0], hessian=np.zeros((3, 3))),
    "along an axis": case(
        lambda x: np.sum(np.prod(x, axis=1)), [[0.0, 2.0], [0.0, 0.0]], gradient=[[2, 0], [0, 0]]
    ),
    "cumprod": case(
        lambda x: np.sum(np.cumprod(x)), [2.0, 0.0, 3.0, 0.0], gradient=[1, 2 + 6, 0, 0]
    ),
    "cumprod along an axis": case(
        lambda x: np.sum(np.cumprod(x, axis=0)[1]),
        [[0.0, 2.0], [0.0, 3.0]],
        gradient=[[0, 3], [0, 2]],
    ),
    "nanprod": case(np.nanprod, [2.0, np.nan, 0.0], gradient=[0, 0, 2]),
    "multiply.reduce": case(np.multiply.reduce, [2.0, 0.0, 3.0], gradient=[0, 6, 0]),
    "logarithms behind a choice": case(
        lambda x: np.sum(np.where(x == 0, 0.0, np.log(np.abs(x)))), [0.0, -2.0], gradient=[0, -0.5]
    ),
}
TIES = {
    "max": case(np.max, [3.0, 3.0, 1.0], gradient=[0.5, 0.5, 0]),
    "min": case(np.min, [1.0, 3.0, 1.0], gradient=[0.5, 0, 0.5]),
    "amax along an axis": case(
        lambda x: np.sum(np.amax(x, axis=1)),
        [[1.0, 1.0], [1.0, 2.0]],
        gradient=[[0.5, 0.5], [0, 1]],
    ),
    "maximum": case(np.maximum, 1.0, 1.0, gradient=(0.5, 0.5)),
    "minimum": case(np.minimum, 0.0, -0.0, gradient=(0.5, 0.5)),
    "fmax": case(np.fmax, 1.0, 1.0, gradient=(0.5, 0.5)),
    "clip at its bounds": case(
        lambda x: np.sum(np.clip(x, 0.0, 1.0)),
        [-1.0, 0.0, 0.5, 1.0, 2.0],
        gradient=[0, 0.5, 1, 0.5, 0],
    ),
    "ptp": case(np.ptp, [1.0, 1.0, 1.0], gradient=[0, 0, 0]),
    "max of squares": case(lambda x: np.max(x * x), [-2.0, 2.0, 1.0], gradient=[-2, 2, 0]),
    "largest two": case(
        lambda x: np.sum(np.sort(x)[-2:] ** 2), [3.0, 1.0, 2.0], gradient=[6, 0, 4]
    ),
    "argsort, then take": case(
        lambda x: x[np.argsort(x)] @ np.array([1.0, 2.0, 3.0]), [3.0, 1.0, 2.0], gradient=[3, 1, 2]
    ),
    "argmax, then take": case(lambda x: x[np.argmax(x)] ** 2, [1.0, 3.0, 3.0], gradient=[0, 6, 0]),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    check(PRODUCTS[name])


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", TIES)
def test_ties(name):
    check(TIES[name])


ORDERED = {  # with the weights that the elements of a sorted row have
    "sort": (lambda x: np.sort(x) @ np.array([1.0, 2.0, 4.0, 8.0]), [1, 2, 4, 8]),
    "median": (lambda x: np.median(x), [0, 0.5, 0.5, 0]),
    "quantile": (lambda x: np.quantile(x, 0.25), [0.25, 0.75, 0, 0]),
    "percentile, lower": (lambda x: np.percentile(x, 50, method="lower"), [0, 1, 0, 0]),
    "partition": (lambda x: np.partition(x, 1)[1], [0, 1, 0, 0]),
    "nanmedian": (lambda x: np.nanmedian(x), [0, 0.5, 0.5, 0]),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("x", [[2.0, 2.0, 1.0, 5.0], [3.0, 3.0, 3.0, 3.0], [1.0, 2.0, 2.0, 2.0]])
def test_sorting_and_selection_choose_each_element_once(name, x):
    f, weights = ORDERED[name]
    x = np.array(x)
    order = np.sort(x)
    for way, (g,) in gradients(f, (x,)):
        np.testing.assert_allclose(np.sum(g), np.sum(weights), err_msg=way)
        for value in np.unique(x):  # equal elements share the weights of their places, somehow
            want = np.sort(np.array(weights)[order == value])
            np.testing.assert_allclose(np.sum(g[x == value]), np.sum(want), err_msg=way)


@pytest.mark.parametrize("x", [[2.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
def test_modes_choose_the_same_elements(x):
    f = lambda x: np.sort(x) @ np.array([1.0, 2.0, 4.0])  # noqa: E731
    everywhere(f, x, gradient=wg.grad(f)(np.array(x)), hessian=np.zeros((3, 3)))


@pytest.mark.parametrize("product", [np.prod, np.cumprod])
@pytest.mark.parametrize("way", [lambda f: f, wg.jit], ids=["eager", "native"])
def test_infinite_factors_of_a_branch_not_taken(product, way):
    x = np.array([0.0, 2.0, 3.0])
    count = np.size(product(x))

    def f(x):
        return np.sum(np.where(x[0] > 0, product(1 / x), x[1] ** 2))

    with np.errstate(all="ignore"):
        want = np.array([0.0, 4.0 * count, 0.0])
        np.testing.assert_array_equal(way(wg.grad(f))(x), want)
        curved = np.diag([0.0, 2.0 * count, 0.0])
        for hessian in (wg.hessian(f), wg.jacfwd(wg.grad(f)), wg.jacrev(wg.grad(f))):
            np.testing.assert_array_equal(way(hessian)(x), curved)


def test_infinite_factors_of_rows_not_used():
    x = np.array([[np.inf, 2.0, 3.0], [4.0, 5.0, 6.0]])
    slope = wg.grad(lambda x: np.sum(np.cumprod(x, axis=1)[1]))(x)
    np.testing.assert_allclose(slope, [[0, 0, 0], [1 + 5 + 30, 4 + 24, 20]])
