"""Which functions are rewritten, and how the others run."""

import functools
import importlib.util
import linecache
import sys
import traceback
import warnings

import numpy as np
import pytest

import wengert as wg
from wengert._engine.frontend.rewritten_functions import rewritten, why_not
from wengert._engine.frontend.source import code_facts


def absolute(x):
    if x > 0:
        return x
    return -x


def test_positions_and_names_are_those_of_the_user():
    def fails(x):
        for _ in range(20):
            x = x * 2.0
            x = undefined_name  # noqa: F821
        return x

    with pytest.raises(NameError) as caught:
        wg.jit(fails)(1.0)
    frames = traceback.extract_tb(caught.value.__traceback__)
    here = [f for f in frames if f.filename == __file__ and f.name == "fails"]
    assert here[-1].line.startswith("x = undefined_name")


def test_an_exception_of_a_branch_names_its_line():
    """It is raised when the compiled function runs, where there is no traceback of the user's."""

    def helper(v):
        return v / undefined_name  # noqa: F821

    def fails(x):
        return helper(x) if x > 0 else x

    assert wg.jit(fails)(-1.0) == -1.0
    with pytest.raises(NameError, match="undefined_name") as caught:
        wg.jit(fails)(1.0)
    line = helper.__code__.co_firstlineno + 1
    assert str(caught.value) == "name 'undefined_name' is not defined"
    assert caught.value.__notes__ == [f"It was raised at {__file__}:{line}, in helper."]


def test_functions_of_numpy_call_no_variables():
    """What comes before and after the callee depends on the version of Python."""
    for plain in (lambda x: np.sum(np.exp(x) * x), lambda x: np.outer(x, x + 1.0)):
        assert not code_facts(plain.__code__).calls
    f, fs = np.sin, [np.sin]
    free = code_facts((lambda x: f(x)).__code__)
    assert free.calls and free.free == ("f",)
    for calling in (
        *(lambda g, x: g(x), lambda x: fs[0](x), lambda g, x: np.sum(g(np.exp(x)))),
        *(lambda g, x: g(*x), lambda g, x: g.value(x), lambda x: (lambda y: y)(x)),
    ):
        assert code_facts(calling.__code__).calls


def test_annotations_of_inner_functions_are_no_branches():
    """They are functions since Python 3.14, which raise for formats that they do not know."""

    def f(x):
        def inner(v: float) -> float:
            return v * 2.0

        return inner(x)

    assert not code_facts(f.__code__).branches


def test_warnings_of_syntax_are_those_of_the_user(tmp_path):
    """Python gave them when it compiled the module, and they may be errors now."""
    path = tmp_path / "warned.py"
    lines = "def f(x):|    s = 0.0|    for i in range(20):|        s += x if s is not 1 else 0|"
    lines += "    return s|def g():|    try:|        return '\\d'|    finally:|        return 2|"
    path.write_text(lines.replace("|", "\n"))
    spec = importlib.util.spec_from_file_location("warned", path)
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    assert why_not(module.f) is None
    assert wg.jit(wg.grad(module.f))(2.0) == 20.0


def test_warnings_are_those_of_the_user():
    def warns(x):
        if x > 0:
            x = 2 * x
        warnings.warn("it is positive", UserWarning)  # noqa: B028
        return x

    with pytest.warns(UserWarning) as caught:
        wg.jit(warns)(1.0)
    line = warns.__code__.co_firstlineno + 3
    assert {(w.filename, w.lineno) for w in caught} == {(__file__, line)}


def test_decorators_run():
    def doubled(f):
        @functools.wraps(f)
        def wrapper(x):
            return 2.0 * f(x)

        return wrapper

    @doubled
    def g(x):
        return x if x > 0 else -x

    assert wg.jit(g)(-3.0) == 6.0


class Base:
    __private = 3.0

    def method(self, x):
        if x > 0:
            return x * self.__private
        return x


class Derived(Base):
    def method(self, x):
        y = super().method(x)
        return y + 1.0 if y > 1 else y


def test_methods_private_names_and_super():
    assert wg.jit(Derived().method)(1.0) == 4.0
    assert wg.jit(Derived().method)(-1.0) == -1.0


def test_lambdas_on_one_line():
    f, g = (lambda x: x if x > 0 else -x), (lambda x: x if x > 1 else 2 * x)
    assert wg.jit(f)(-3.0) == 3.0 and wg.jit(g)(0.5) == 1.0


def test_code_without_source():
    space = {}
    exec("def f(x):\n    return x if x > 0 else -x", space)
    assert "source" in why_not(space["f"])
    with pytest.raises(wg.errors.TracedBranchError, match="of f are not converted: its source"):
        wg.jit(space["f"])(1.0)


def test_a_file_that_has_changed(tmp_path):
    path = tmp_path / "changing.py"
    path.write_text("def f(x):\n    if x > 0:\n        return x\n    return -x\n")
    spec = importlib.util.spec_from_file_location("changing", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text("def f(x):\n    if x > 0:\n        return 5 * x\n    return -x\n")
    linecache.checkcache()
    assert "changed" in why_not(module.f)
    with pytest.raises(wg.errors.TracedBranchError, match="has changed since it was imported"):
        wg.jit(module.f)(1.0)


def test_generators_are_not_rewritten():
    def items(x):
        for i in range(3):
            yield x * i

    assert rewritten(items) is None
    assert wg.jit(lambda x: sum(items(x)))(2.0) == 6.0


def test_jit_without_rewriting():
    with pytest.raises(wg.errors.TracedBranchError):
        wg.jit(absolute, source=False)(1.0)
    assert wg.jit(absolute)(-1.0) == 1.0


def test_functions_that_call_locals_are_not_rewritten():
    def f(x):
        y = x * 2
        return locals()["y"]

    assert "locals" in why_not(f)
    assert wg.jit(f)(2.0) == 4.0


def test_recursion_with_a_static_depth():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    assert wg.jit(power, static_argnames="n")(2.0, 5) == 32.0


def test_shadowed_names():
    def f(x):
        range = [x, 2 * x, 3 * x]
        s = 0.0
        for v in range:
            s += v
        return s

    assert wg.jit(f)(1.0) == 6.0


def test_keyword_defaults_and_star_arguments():
    def f(x, *more, scale=3.0, **rest):
        if x > 0:
            return x * scale + sum(more) + rest.get("c", 0.0)
        return x

    assert wg.jit(f)(1.0, 2.0, c=4.0) == 9.0
    assert wg.jit(f)(1.0, scale=1.0) == 1.0


def test_late_binding_closures():
    def f(x):
        fs = []
        for i in range(3):
            fs.append(lambda: x * i)  # noqa: B023
        return fs[0]() + fs[1]()

    assert wg.jit(f)(2.0) == 8.0


def test_with_and_try_statements():
    def f(x):
        s = 0.0
        with np.errstate(all="ignore"):
            for i in range(12):
                s += np.log(x + i)
        try:
            if s > 0:
                s = s * 2
        finally:
            s = s + 1
        return s

    np.testing.assert_allclose(wg.jit(f)(2.0), f(2.0))


def test_explain_says_what_is_unrolled_and_what_is_not_read():
    def f(x):
        rows = {}
        for i in range(12):
            rows.setdefault(i, x * i)
        return rows[3]

    told = wg.explain(f)(2.0)
    (found,) = told.note("unrolled")
    assert "12 iterations" in found.message and "the key of a dict" in found.message
    space = {}
    exec("def g(x, n=3):\n    return x * 2 if n else x", space)
    assert "source is not available" in wg.explain(space["g"])(2.0).note("source")[0].message


def test_functions_of_a_user_module(tmp_path):
    path = tmp_path / "users.py"
    path.write_text("def f(x):\n    return x if x > 0 else -x\n")
    spec = importlib.util.spec_from_file_location("users", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert wg.jit(module.f)(-2.0) == 2.0
    globals()["users"] = module
    try:
        f = lambda x: users.f(x) * 3.0  # noqa: E731, F821
        assert wg.jit(f)(-2.0) == 6.0
    finally:
        del globals()["users"]


def test_cells_of_a_notebook():
    """Each cell is a file of its own in `linecache`; a function that is defined again is new."""
    space = {}
    for k, factor in enumerate((1.0, 10.0)):
        text = (
            "def f(x):\n    s = 0.0\n    for i in range(20):\n        if x[i % 3] > 0:\n"
            f"            s += {factor} * x[i % 3]\n    return s\n"
        )
        name = f"<ipython-input-{k}-wengert>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), space)
        x = np.array([1.0, -1.0, 2.0])
        np.testing.assert_allclose(wg.jit(space["f"])(x), space["f"](x))
        assert len(wg.trace(space["f"])(x).nodes) < 8


@pytest.mark.parametrize("run", [wg.grad, wg.jit, lambda f: wg.jit(wg.grad(f))])
def test_a_debugger_sees_the_lines_of_the_user(run):
    def f(x):
        s = 0.0
        for i in range(20):
            t = x[i % 3] ** 2
            if t > 1:
                s += t
            else:
                s -= t
        return s

    lines = set()

    def tracer(frame, event, _):
        if frame.f_code.co_filename != __file__ or frame.f_code.co_name != "f":
            return tracer
        if event == "line":
            lines.add(frame.f_lineno - f.__code__.co_firstlineno)
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        run(f)(np.array([1.0, -1.0, 2.0]))
    finally:
        sys.settrace(before)
    assert lines - {0} == {1, 2, 3, 4, 5, 7, 8}


def test_a_lambda_that_returns_a_lambda():
    """Lambdas in one line: the one that runs is converted, and not the one that it returns."""
    scaled = lambda p: lambda k, c: np.abs(p(k, c))  # noqa: E731
    twice = lambda k: lambda k: lambda k: 2.0 * k  # noqa: E731

    def loss(k):
        return np.sum(scaled(lambda k, x: k * x)(k, k)) + np.sum(twice(k)(3.0 * k)(k))

    np.testing.assert_array_equal(wg.grad(loss)(np.array([1.0, -2.0])), [4.0, -2.0])
