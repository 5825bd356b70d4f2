"""All pairs of elementwise operations: f(g(x)) and f(x, g(x)), eager, in graphs and in native code.

The law is `wengert.testing.check_pairs`.  Each run takes a few operations f, with a part of the
operations g; `make test-all` takes all pairs of the engine's operations, and each function of
scipy.special with a selection of partners, because some of them take milliseconds for a value.
Operations of the five styles of wengert.extend are composed with the engine's, too.
"""

import zlib

import numpy as np
import pytest
from tests.seeds.test_checklist_graphs import _styles

import wengert as wg
from wengert._engine.core.handle import is_traced
from wengert._engine.core.lazy_import import load_families
from wengert._engine.kinds.elementwise import REAL, Elementwise
from wengert._engine.ops.elementwise.trigonometric import cos
from wengert.errors import CheckError
from wengert.testing import check_pairs
from wengert.testing.pairs import check_composed, composed, pairable

load_families()
EVERY = pairable()
OURS = [op for op in EVERY if "." not in op.name]
SPECIAL = [op for op in EVERY if "." in op.name]
# Their operands lie in short intervals between jumps, which the points of a partner may miss.
SHORT = {"remainder", "fmod", "clip"}


def chosen(ops, name, share):
    """About one in `share` operations, depending on a name."""
    return [op for op in ops if zlib.crc32(f"{name} {op.name}".encode()) % share == 0]


def apart(f, g):
    """Whether f(x, g(x)) has no points: no x is in the domains of both."""
    (a, b), (c, d) = f.domain[0], g.domain[0]
    return len(f.domain) > 1 and max(a, c) >= min(b, d)


@pytest.mark.sample(3)
@pytest.mark.parametrize("f", OURS, ids=lambda op: op.name)
def test_some_pairs(f):
    report = check_pairs([f], chosen(OURS, f.name, 8))
    assert report.checked >= 2


@pytest.mark.slow
@pytest.mark.parametrize("f", OURS, ids=lambda op: op.name)
def test_all_pairs(f):
    report = check_pairs([f], OURS)
    left_out = set(report.without_points) - {f"{f.name} of {g.name}" for g in OURS if apart(f, g)}
    assert len(left_out) <= (f.name in SHORT)
    assert report.checked + len(report.without_points) >= len(OURS)


@pytest.mark.slow
@pytest.mark.parametrize("f", SPECIAL, ids=lambda op: op.name)
def test_pairs_with_special_functions(f):
    outer = check_pairs([f], [*chosen(OURS, f.name, 12), *chosen(SPECIAL, f.name, 40)])
    inner = check_pairs(chosen(OURS, f.name, 24), [f], native=False)
    assert outer.checked + inner.checked >= 4


class Styled:
    """The square, defined in one of the styles, as an operand of `composed`."""

    domain, kinks, rules = (REAL,), (), (True,)

    def __init__(self, name, op):
        self.name, self.op = name, op

    def run(self, x):
        return x * x

    def __call__(self, x):
        return self.op(x)


@pytest.mark.parametrize("style", ["000", "001", "002", "003", "004"])
def test_pairs_with_operations_of_each_style(style):
    square = Styled(f"square of style {style}", _styles()[style])
    for f in chosen(OURS, "styles", 12):
        for outer, inner, twice in (
            (f, square, False),
            (square, f, False),
            (f, square, True),
        ):
            if twice and len(f.domain) < 2:
                continue
            one = composed(outer, inner, twice, np.random.default_rng(7))
            assert one is not None or f.name in SHORT, f.name
            if one is not None:
                check_composed(one)


# ---- planted faults ----------------------------------------------------------------------------


def sine(rule=lambda t, out, x: t * cos(x), body=lambda s, x: s.sin(x)):
    body.__doc__, body.__module__ = "Planted.", "wengert._engine.planted"  # as the engine's own
    return Elementwise(body, name="planted").partials(rule)


def another_body():
    """The interpreter runs the sine, native code another function."""
    op = sine(body=lambda s, x: s.sin(x) + 1e-9 * x)
    op.run = np.sin
    return op


FAULTS = {
    "native": (another_body(), "native code"),
    "traced": (
        sine(lambda t, out, x: t * cos(x) * (1.0 + 1e-6 * is_traced(x))),
        "derivative of the graph",
    ),
    "first": (sine(lambda t, out, x: t * (1.0 + 1e-6) * cos(x)), "reverse mode"),
    "second": (sine(lambda t, out, x: t * wg.stop_gradient(cos(x))), "second derivative"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name):
    planted, message = FAULTS[name]
    for ops in ((["exp"], [planted]), ([planted], ["exp"])):
        with pytest.raises(CheckError, match=rf"planted.*{message}"):
            check_pairs(*ops)
    check_pairs([sine()], ["exp"])


def test_compositions_and_their_points():
    report = check_pairs(["logaddexp"], ["arccos", "cosh"], native=False)
    assert report.checked == 4 and str(report) == "4 compositions, 0 without suitable points"
    scaled = composed(*(wg._engine.core.op.lookup(n) for n in ("arcsin", "cosh")), False,
                      np.random.default_rng(0))  # fmt: skip
    assert "* cosh(x) +" in scaled.name and len(scaled.x) == 3


def test_points_without_a_solution_are_left_out():
    """SciPy's inverses return numbers like 2.7e-315 there."""
    check_pairs(["special.chndtrinc"], ["special.gammaincc"], native=False)
    check_pairs(["conjugate"], ["special.chndtridf"], native=False)
