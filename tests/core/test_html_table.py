"""What notebooks show of tensors, compiled functions and results (`_repr_html_`)."""

import re

import numpy as np

import wengert as wg
from wengert import integrate, optim
from wengert._engine.core import html_table
from wengert.nn.training import History


def cells(text):
    """The words of a page, without its tags."""
    assert text.startswith("<table>") and text.endswith("</table>")
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))


def test_text_is_escaped_and_arrays_are_shortened():
    found = html_table.table("<b>", {"a<b": "x & y", "n": np.arange(1000.0), "k": np.float64(2.5)})
    assert "&lt;b&gt;" in found and "a&lt;b" in found and "x &amp; y" in found
    assert "..." in found and len(found) < 800 and ">2.5<" in found
    assert "&lt;h&gt;" in html_table.grid("g", ["<h>"], [["1"]])


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
