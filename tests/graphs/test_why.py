"""why: small programs in which nothing leads from y back to x, each with its known cause.

Also what can be asked about, and what can be done with findings.  A program marks the line that is
to be found with the comment `# here`.  The other symptoms are in the files beside.
"""

import inspect

import numpy as np
import pytest

import wengert as wg


def marked(f):
    """The number of the line of a function that bears the mark `# here`."""
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, text in enumerate(lines) if "# here" in text)


X = np.array([1.5, 0.5, 2.5])


# ---- no way from y to x ------------------------------------------------------------------------


def unused(x):
    return np.sum(np.ones(3))


def detached(x):
    h = wg.stop_gradient(x)  # here
    return np.sum(h * h)


def detached_tensor(x):
    h = (x * 2.0).detach()  # here
    return np.sum(h * h)


def under_no_grad(x):
    with wg.no_grad():
        h = x * 3.0  # here
    return np.sum(h)


def converted(x):
    h = (x * 2.0).numpy()  # here
    return np.sum(h)


def converted_item(x):
    return x[0].item() * np.ones(3)  # here


def integer_cast(x):
    k = x.astype(int)  # here
    return np.sum(k * 2.0)


def compared(x):
    positive = x > 1.0  # here
    return np.sum(positive * 2.0)


def counted(x):
    best = np.argmax(x)  # here
    return best * 1.0


def floored(x):
    return np.sum(np.floor(x))  # here


def rounded(x):
    return np.sum(np.round(x))  # here


def signs(x):
    return np.sum(np.sign(x))  # here


def condition_only(x):
    return np.sum(np.where(x, 1.0, 2.0))  # here


def branched(x):
    if x[0] > 0.5:  # here
        return np.sum(np.ones(2))
    return np.sum(np.zeros(2))


@pytest.mark.parametrize(
    ("f", "kind"),
    [
        (detached, "detached"),
        (detached_tensor, "detached"),
        (under_no_grad, "no_grad"),
        (converted, "converted"),
        (converted_item, "converted"),
        (integer_cast, "discrete"),
        (compared, "discrete"),
        (counted, "discrete"),
        (floored, "discrete"),
        (rounded, "discrete"),
        (signs, "discrete"),
        (condition_only, "condition"),
        (branched, "branch"),
    ],
)
def test_where_the_way_was_lost(f, kind):
    found = wg.why(f, X)
    assert found.gradient is None
    assert (found[0].kind, found[0].symptom) == (kind, "disconnected")
    assert found[0].line == marked(f)
    assert found[0].file == __file__
    assert "# here" in found[0].text and found[0].text in str(found)


def test_an_input_that_is_not_used():
    found = wg.why(unused, X)
    assert found.kinds == ("unused",)
    assert "does not appear" in found[0].message


def test_one_of_two_arguments():
    found = wg.why(lambda a, b: np.sum(a * 2.0), X, X, argnums=(0, 1))
    assert found.kinds == ("unused",)
    assert "[b]" in found[0].message and "with respect to a (" in found.summary
    assert found.gradient[1] is None
    np.testing.assert_array_equal(found.gradient[0], np.full(3, 2.0))


def test_a_condition_on_the_way_is_not_blamed():
    def f(x):
        h = np.where(x > 1.0, 2.0 * x, x)
        return np.sum(np.floor(h))  # here

    found = wg.why(f, X)
    assert found.kinds == ("discrete",) and found[0].line == marked(f)


def test_only_the_line_that_passes_nothing_is_named():
    def f(x):
        h = x * 2.0
        return np.sum(np.where(h, 1.0, 2.0) * 3.0)  # here

    found = wg.why(f, X)
    assert found.kinds == ("condition",) and found[0].line == marked(f)
    assert found[0].node.op.name == "where"


def test_two_ways_lost():
    def f(x):
        return np.sum(np.floor(x) + wg.stop_gradient(x))

    assert set(wg.why(f, X).kinds) == {"discrete", "detached"}


def test_tensors_and_their_lines():
    x = wg.tensor(X, requires_grad=True)
    y = np.sum(np.floor(x))
    found = wg.why(y, x)
    assert found.kinds == ("discrete",) and found[0].line is None
    assert "note_lines" in str(found)
    with wg.note_lines():
        y = np.sum(np.floor(x))  # line
    found = wg.why(y, x)
    assert "# line" in found[0].text and "note_lines" not in str(found)


def test_note_lines_shows_what_no_grad_and_detach_cut_off():
    x = wg.tensor(X, requires_grad=True)
    with wg.note_lines():
        with wg.no_grad():
            a = x * 2.0
        b = x.detach() * 3.0
    assert not a.requires_grad and not b.requires_grad
    assert wg.why(np.sum(a), x).kinds == ("no_grad",)
    assert wg.why(np.sum(b), x).kinds == ("detached",)


def test_note_lines_changes_no_program():
    x = wg.tensor(X, requires_grad=True)
    with wg.note_lines(), wg.no_grad():
        a = (x * 2.0).requires_grad_()
        b = x.detach().requires_grad_()
        x -= 0.5
        assert x.requires_grad and x.is_leaf
    (a * b).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), X)
    np.testing.assert_array_equal(b.grad.numpy(), 2.0 * X)
    with pytest.raises(wg.WengertError, match="result of an operation"), wg.note_lines():
        np.floor(x).requires_grad_()


def test_note_lines_is_a_decorator_and_ends():
    @wg.note_lines()
    def f(x):
        return x * 2.0

    x = wg.tensor(X, requires_grad=True)
    assert f(x).node.where.startswith(__file__)
    assert (x * 2.0).node.where is None


def test_released_history():
    x = wg.tensor(X, requires_grad=True)
    h = x * x
    y = np.sum(h)
    y.backward(retain_graph=False)
    assert wg.why(y, x).kinds == ("released",)


def test_another_tensor_of_equal_value():
    x, twin = wg.tensor(X, requires_grad=True), wg.tensor(X, requires_grad=True)
    found = wg.why(np.sum(twin * twin), x)
    assert found.kinds == ("copy", "unused")


def test_the_values_of_x_as_a_constant():
    x, w = (wg.tensor(X, requires_grad=True) for _ in range(2))
    y = np.sum(w * 2.0 * x.detach())
    assert wg.why(y, x).kinds == ("detached", "unused")


def test_x_written_to_after_y():
    x = wg.tensor(X, requires_grad=True)
    h = x * 2.0
    with wg.note_lines():
        y = np.sum(h * h)
        h[0] = 5.0  # write
    found = wg.why(y, h)
    assert found.kinds[0] == "rewritten" and "# write" in found[0].text
    assert not wg.why(y, x)


def test_a_leaf_that_was_stepped_is_the_leaf_it_was():
    x = wg.tensor(X, requires_grad=True)
    y = np.sum(x * x)
    with wg.no_grad():
        x -= 0.1
    found = wg.why(y, x)
    assert not found
    np.testing.assert_array_equal(found.gradient, 2 * X)


def test_a_name_given_to_a_new_tensor():
    x = wg.tensor(X, requires_grad=True)
    y = np.sum(x * x)
    x = x * 2.0
    assert wg.why(y, x).kinds[0] == "rewritten"


def test_all_leaves():
    a, b = (wg.tensor(X, requires_grad=True) for _ in range(2))
    found = wg.why(np.sum(a * np.maximum(b, 5.0)))
    assert found.kinds == ("unchosen",) and "leaf 1" in found[0].message


def test_a_value_without_history():
    x = wg.tensor(X)
    assert "no tensor that requires" in str(wg.why(np.sum(x)))


# ---- graphs and traced values ------------------------------------------------------------------


def test_graphs():
    graph = wg.trace(lambda x: np.sum(np.sqrt(x)))(wg.spec("n"))
    assert not wg.why(graph) and "not known" in str(wg.why(graph))
    found = wg.why(graph, np.zeros(2))
    assert found.kinds == ("singular",) and found[0].file == __file__
    assert wg.why(wg.trace(floored)(wg.spec(3))).kinds == ("discrete",)
    assert wg.why(wg.trace(floored)(wg.spec(3)))[0].line == marked(floored)


def test_traced_tensors():
    x, z = wg.input("x", 3), wg.input("z", 3)
    assert not wg.why(np.sum(x * z), x)
    assert wg.why(np.sum(np.floor(x) * z), x).kinds == ("discrete",)
    assert wg.why(np.sum(z), x).kinds == ("unused",)


# ---- errors, and what can be done with findings ------------------------------------------------


def test_an_operation_without_a_rule():
    def f(x):
        return np.sum(no_rule(x))  # here

    found = wg.why(f, X)
    assert (found.kinds, found.symptoms) == (("rule",), ("error",))
    assert found[0].line == marked(f)


no_rule = wg.extend.opaque(lambda x: x * 1.0, name="why_test_without_rule")


def test_an_array_written_to_behind_the_tape():
    data = np.ones(5000)
    x = wg.tensor(2.0, requires_grad=True)
    y = np.sum(data * x)
    data[0] = np.nan
    found = wg.why(y, x)
    assert (found.kinds[0], found.symptoms[0]) == ("mutated", "error")
    assert "Copy it before you change it" in found[0].message


def test_what_has_no_gradient_is_refused():
    with pytest.raises(wg.WengertError, match="call why\\(f, \\*args\\)"):
        wg.why(wg.tensor(1.0, requires_grad=True), 3.0)
    with pytest.raises(wg.WengertError, match="two tensors"):
        wg.why(3.0, 4.0)


def test_findings_are_a_sequence_and_html():
    found = wg.why(both := lambda x: np.sum(np.floor(x) * wg.stop_gradient(x)), X)
    assert found and len(found) == 2 and list(found) == [found[0], found[1]]
    assert callable(both) and found._repr_html_().startswith("<pre>")
    assert "&lt;" in found._repr_html_()


def test_state_is_left_as_it_was():
    before = wg._engine.core.recording.switches.count
    wg.why(floored, X)
    with pytest.raises(ZeroDivisionError):
        wg.why(lambda x: x / (1 // 0), X)
    assert wg._engine.core.recording.switches.count == before
