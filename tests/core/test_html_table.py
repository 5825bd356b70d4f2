"""What notebooks show of tensors, compiled functions and results (`_repr_html_`)."""

import copy
import pickle
import re

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import wengert as wg
from wengert import integrate, optim
from wengert._engine.core import display
from wengert.nn.training import History


def cells(text):
    """The words of a page, without its tags."""
    assert text.startswith("<table>") and text.endswith("</table>")
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))


def test_text_is_escaped_and_arrays_are_shortened():
    found = display.table("<b>", {"a<b": "x & y", "n": np.arange(1000.0), "k": np.float64(2.5)})
    assert "&lt;b&gt;" in found and "a&lt;b" in found and "x &amp; y" in found
    assert "..." in found and len(found) < 800 and ">2.5<" in found
    assert "&lt;h&gt;" in display.grid("g", ["<h>"], [["1"]])


def test_tensors():
    t = wg.tensor([1.0, 2.0], requires_grad=True)
    np.sum(t * t).backward()
    shown = cells(t._repr_html_())
    assert "Tensor" in shown and "float64[2]" in shown and "array([1., 2.])" in shown
    assert "gradient" in shown and "2., 4." in shown
    assert "not required" in cells(wg.tensor(1.0)._repr_html_())
    seen = []

    def noted(x):
        seen.append(x._repr_html_())
        return 2.0 * x

    wg.trace(noted)(wg.spec(3))
    assert "Tensor, traced" in seen[0] and "float64[3]" in seen[0]


def test_compiled_functions():
    f = wg.jit(np.sin)
    assert "0, of which 0 for all lengths" in cells(f._repr_html_())
    f(np.ones(3))
    shown = cells(f._repr_html_())
    assert (
        "jit of sin" in shown and "1, of which" in shown and repr(f) == "<jit of sin, 1 programs>"
    )


def test_results():
    found = integrate.solve(lambda t, y: -y, (0.0, 1.0), np.ones(1), method="RK45")
    shown = cells(found._repr_html_())
    assert found.message in shown and "n_steps" in shown and str(int(found.nfev)) in shown
    history = History()
    history.add({"epoch": 1, "loss": 0.5})
    shown = cells(history._repr_html_())
    assert "History of 1 epochs" in shown and "loss" in shown and "0.5000" in shown
    result = optim.nlp(lambda x: np.sum((x - 1.0) ** 2), np.zeros(2), method="trust-constr")
    shown = cells(result._repr_html_())
    assert "Nonlinear program" in shown and result.message in shown and "trust-constr" in shown


def _sde():
    def still(t, y):
        return 0.0 * y

    return integrate.solve_sde(still, still, (0.0, 1.0), np.ones(2), key=wg.random.key(0), steps=2)


RESULTS = {
    "minimize": lambda: optim.minimize(lambda x: x @ x, np.ones(2)),
    "least_squares": lambda: optim.least_squares(lambda x: x - 1.0, np.ones(2)),
    "solve_sde": _sde,
    "solve_dde": lambda: integrate.solve_dde(
        lambda t, y, z: -z[0], (0.0, 1.0), lambda t: np.ones(1), 0.5, steps=4
    ),
    "check_op": lambda: wg.check_op("tanh"),
    "multipliers": lambda: optim.nlp(lambda x: x @ x, np.ones(2)).multipliers,
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_shown_as_tables_of_their_fields(name):
    found = RESULTS[name]()
    names = getattr(found, "_fields", None) or list(vars(found) or found)
    shown = found._repr_html_()
    assert shown.startswith(f"<table><caption>{type(found).__name__}</caption>")
    assert all(f">{field}</th>" in shown for field in names)


def test_results_of_scipy_remain_what_they_are():
    found = []

    def solved(p):
        found.append(scipy.optimize.root_scalar(lambda x: x * x - p, bracket=(0.0, 3.0)))
        found.append(scipy.optimize.least_squares(lambda x: x - p, np.zeros(1)))
        found.append(scipy.integrate.solve_ivp(lambda t, y: -p * y, (0.0, 1.0), np.ones(1)))
        return found[-3].root + found[-2].x[0] + found[-1].y[0, -1]

    wg.grad(solved)(2.0)
    theirs = (
        scipy.optimize.RootResults,
        scipy.optimize.OptimizeResult,
        type(scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), np.ones(1))),
    )
    for result, cls in zip(found, theirs, strict=True):
        assert isinstance(result, cls) and type(result).__name__ == cls.__name__
        assert f"<caption>{cls.__name__}</caption>" in result._repr_html_()
    plain = optim.minimize(lambda x: x @ x, np.ones(2))
    for copied in (pickle.loads(pickle.dumps(plain)), copy.deepcopy(plain)):
        assert type(copied) is type(plain) and copied._repr_html_() == plain._repr_html_()
