"""Who takes part in a case, with errors measured against the references.

case    of a problem and a kind: value, gradient or jacobian
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from native.case import Call, Cannot, Case

from . import by_casadi, by_diffrax, by_hand, by_lsoda, by_wengert, published, references
from .problem import Problem

WITHIN = {"value": 3e-3, "gradient": 0.1, "jacobian": 0.1}  # errors beyond which one is wrong
MINUTES = (("jacobian", "Brusselator"),)  # of diffrax: more than 10 s for one call


def numba(problem: Problem, kind: str) -> Callable[[], Call] | None:
    """The loops by hand, where there are any."""
    lotka_volterra, robertson = problem.name == "Lotka-Volterra", problem.name == "Robertson"
    if not lotka_volterra and (kind != "value" or (problem.stiff and not robertson)):
        return None

    def make() -> Call:
        from numba import njit

        if robertson:
            run = by_hand.robertson(problem, njit)
        elif lotka_volterra:
            run = by_hand.lotka_volterra(problem, kind, njit)
        else:
            run = by_hand.value(problem, njit)
        return Call(run, (problem.parameters,))

    return make


def diffrax(problem: Problem, kind: str) -> Call:
    """In reasonable time."""
    if (kind, problem.name) in MINUTES:
        raise Cannot("one call takes 17 s")
    return by_diffrax.call(problem, kind)


def case(problem: Problem, kind: str) -> Case:
    """Without those that have no such function at all."""
    makes: dict[str, Callable[[Problem, str], Call]] = {
        "wengert": by_wengert.call,
        "diffrax": diffrax,
        "CasADi": by_casadi.call,
    }
    if kind == "value":
        makes |= {"numbalsoda": by_lsoda.numbalsoda, "SciPy": by_lsoda.scipy}
    if kind == "gradient" and problem.stiff:
        makes["CasADi, forward"] = lambda problem, _: by_casadi.call(problem, "gradient, forward")
    contestants = {name: partial(make, problem, kind) for name, make in makes.items()}
    loops = numba(problem, kind)
    known = published.PUBLISHED.get((kind, problem.name))
    return Case(
        problem.name,
        contestants | ({} if loops is None else {"numba": loops}),
        within=WITHIN[kind],
        reference=references.found(problem.name, kind),
        published={} if known is None else {"Julia, published": known},
    )
