"""Arrays without elements, and without axes: NumPy's value, and a gradient of the argument's shape.

Every public function of `wengert.numpy` that NumPy itself lets pass is called in the ways that one
argument of each shape allows; what NumPy refuses, nobody asks of wengert.
"""

import inspect

import numpy as np
import pytest

import wengert as wg

from .ways import case, check

SHAPES = [(0,), (0, 3), (3, 0), (2, 0, 2), ()]
CALLS = {
    "f(x)": lambda f, x: f(x),
    "f(x, x)": lambda f, x: f(x, x),
    "f(x, axis=0)": lambda f, x: f(x, axis=0),
    "f(x, axis=-1)": lambda f, x: f(x, axis=-1),
    "f(x, keepdims=True)": lambda f, x: f(x, keepdims=True),
    "f(x, 0)": lambda f, x: f(x, 0),
    "f(x, 2)": lambda f, x: f(x, 2),
    "f(x, 0.5)": lambda f, x: f(x, 0.5),
    "f(x > 0, x, x)": lambda f, x: f(x > 0, x, x),
    "f([x, x])": lambda f, x: f([x, x]),
}
TAKES_LISTS = "concatenate stack hstack vstack dstack column_stack block concat".split()
# What is not a function of arrays of numbers, reads or writes files, or answers by chance (empty).
NOT_ASKED = [
    *"test info save savez savetxt savez_compressed show_config show_runtime load loadtxt".split(),
    *"fromfile genfromtxt fromregex get_include empty empty_like seterr seterrcall".split(),
    *"setbufsize set_printoptions printoptions errstate nditer nested_iters frombuffer".split(),
    *"from_dlpack asmatrix bmat vectorize frompyfunc busday_count may_share_memory".split(),
    *"shares_memory typename apply_over_axes isfortran".split(),
    # Sizes and positions, of which wengert asks for plain ones.
    *"arange linspace logspace geomspace eye identity tri tril_indices triu_indices".split(),
    *"diag_indices bartlett blackman hamming hanning kaiser".split(),
]
N = ("0", "2", "0.5")
REFUSED = {  # (function, call): why wengert refuses what NumPy lets pass for some of the shapes
    ("squeeze", "f(x, axis=0)"): "there is no axis 0; NumPy's does not look",
    ("squeeze", "f(x, axis=-1)"): "there is no axis",
    ("squeeze", "f(x, 0)"): "there is no axis 0",
    ("squeeze", "f(x, 2)"): "there is no axis 2",
    ("cumulative_sum", "f(x)"): "there is no axis to go along",
    ("cumulative_prod", "f(x)"): "there is no axis to go along",
    ("argwhere", "f(x)"): "nonzero of no axes, which NumPy refuses elsewhere",
    ("trim_zeros", "f(x)"): "nonzero of no axes",
    ("poly", "f(x)"): "an array, where NumPy gives a Python number",
    **{(f, "f(x, 0.5)"): "half a time" for f in ("repeat", "roll", "polyint")},
    **{(f, "f(x, x)"): "a time that is not an integer" for f in ("roll", "polyint")},
    ("polyint", "f(x > 0, x, x)"): "a time that is not an integer",
    **{("polymul", c): "a polynomial without coefficients" for c in CALLS},
    **{(f, "f(x, x)"): "a tolerance is a plain number" for f in ("matrix_rank", "pinv")},
    **{
        (f, "f(x > 0, x, x)"): "an option that is an array"
        for f in ("pinv", "intersect1d", "average")
    },
    **{(f, "f(x, x)"): "an axis that is an array" for f in ("size", "fftshift", "ifftshift")},
    **{(f, f"f(x, {n})"): "rows of a length of their own" for f in ("cov", "corrcoef") for n in N},
    **{(f, "f(x, 2)"): "NumPy answers with what was in memory" for f in ("hfft", "irfft")},
    ("piecewise", "f(x > 0, x, x)"): "numbers written to booleans",
    ("cross", "f(x, x)"): "vectors of the plane, which NumPy is about to refuse",
}


def functions():
    for module, theirs in ((wg.numpy, np), (wg.numpy.linalg, np.linalg), (wg.numpy.fft, np.fft)):
        for name in sorted(getattr(module, "__all__", dir(module))):
            f = getattr(theirs, name, None)
            known = callable(f) and not inspect.isclass(f) and not name.startswith("_")
            if known and name not in NOT_ASKED:
                yield f"{theirs.__name__}.{name}", (f, getattr(module, name))


def leaves(x):
    if isinstance(x, tuple | list):
        for item in x:
            yield from leaves(item)
    elif x is not None:
        yield x


def is_asked(name, f, call):
    """Whether a call is meant: not with `out=` in second place, not a list where none belongs."""
    if call == "f([x, x])":
        return name in TAKES_LISTS
    count = {"f(x > 0, x, x)": 3, "f(x, x)": 2, "f(x, 0)": 2, "f(x, 2)": 2, "f(x, 0.5)": 2}
    return not isinstance(f, np.ufunc) or f.nin == count.get(call, 1)


def answers(f, call, x):
    """What NumPy gives, if it is numbers; None if it refuses."""
    try:
        found = list(leaves(CALLS[call](f, x)))
    except Exception:
        return None
    numeric = np.ndarray | np.generic | float | int | complex
    return found if all(isinstance(a, numeric) for a in found) else None


FUNCTIONS = dict(functions())


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore")  # means and variances of nothing
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_function(shape):
    asked, wrong = 0, []
    for full_name, (f, ours) in FUNCTIONS.items():
        name = full_name.rpartition(".")[2]
        for call in CALLS:
            x = np.full(shape, 0.7)
            want = answers(f, call, x) if is_asked(name, f, call) else None
            if want is None or (name, call) in REFUSED:
                continue
            asked += 1
            try:
                _compare(ours, call, x, want)
            except Exception as error:
                wrong.append(f"{full_name}: {call} of {shape}: {type(error).__name__}: {error}")
    assert asked > 200
    assert not wrong, "\n".join(wrong)


def _compare(f, call, x, want):
    t = wg.tensor(x, requires_grad=True)
    found = list(leaves(CALLS[call](f, t)))
    assert len(found) == len(want)
    live = [a for a in found if isinstance(a, wg.Tensor) and a.requires_grad]
    for a, b in zip(found, want, strict=True):
        value = np.asarray(a.detach().numpy() if isinstance(a, wg.Tensor) else a)
        assert value.shape == np.shape(b) and value.dtype == np.asarray(b).dtype, (a, b)
        np.testing.assert_allclose(value, b, rtol=1e-13)
    if live:
        total = sum(np.sum(np.real(a)) for a in live)
        total.backward()
        assert t.grad is None or (t.grad.shape == x.shape and t.grad.dtype == x.dtype)


EMPTY = {
    "elements": case(lambda x: np.sum(np.exp(x) * 2), np.zeros((0,)), gradient=np.zeros((0,))),
    "rows": case(
        lambda x: np.sum(np.sum(x, axis=0) ** 2), np.zeros((0, 3)), gradient=np.zeros((0, 3))
    ),
    "product of nothing": case(np.prod, np.zeros((0,)), gradient=np.zeros((0,))),
    "matrix product over nothing": case(
        lambda a, b: np.sum(a @ b),
        np.zeros((2, 0)),
        np.zeros((0, 3)),
        gradient=(np.zeros((2, 0)), np.zeros((0, 3))),
    ),
    "nothing chosen": case(lambda x: np.sum(x[:0] ** 2) + x[0], [2.0, 3.0], gradient=[1, 0]),
    "joined with nothing": case(
        lambda x: np.sum(np.concatenate([x, x[:0]]) ** 2), [2.0, 3.0], gradient=[4, 6]
    ),
    "one number": case(
        lambda x: np.sin(x) * x,
        2.0,
        gradient=2 * np.cos(2) + np.sin(2),
        hessian=2 * np.cos(2) - 2 * np.sin(2),
    ),
    "one number, as an array": case(
        lambda x: np.sum(np.reshape(x, (1, 1)) @ np.ones((1, 2))), 2.0, gradient=2.0
    ),
    "one number, broadcast": case(
        lambda x: np.sum(x * np.arange(4.0)[:, None] * np.ones(3)), 2.0, gradient=18.0
    ),
    "broadcasting on both sides": case(
        lambda a, b: np.sum((a + b) ** 2),
        [[1.0], [2.0]],
        [[3.0, 4.0, 5.0]],
        gradient=([[30.0], [36.0]], [[18.0, 22.0, 26.0]]),
    ),
    "broadcasting a number and an axis": case(
        lambda a, b: np.sum(a * b), 3.0, [[1.0, 2.0]], gradient=(3.0, [[3.0, 3.0]])
    ),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", EMPTY)
def test_gradients(name):
    check(EMPTY[name])
