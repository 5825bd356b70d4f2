"""The last state of initial value problems."""

from __future__ import annotations

from collections.abc import Iterator

from native.case import Case

from . import classic, contestants, published

TITLE = "Values: the last state"
TEXT = (
    "Each cell has the median time and the error of the state relative to an accurate one; all "
    "solve with the same tolerances (1e-7 and 1e-5 absolute for the first four, as published; "
    "1e-3 and 1e-6 for Robertson, as published; 1e-6 and 1e-8 or 1e-9; 1e-9 for three bodies). "
    "*wengert* is `integrate.solve` with tsit5, for stiff problems rodas5p, for three bodies "
    "DOP853. *diffrax*: Tsit5, Kvaerno5 and Dopri8 with its PI controller. *CasADi*: CVODES, Adams "
    "or BDF. *numbalsoda*: DOP853 and LSODA with a right-hand side compiled by numba. *SciPy*: the "
    "same methods of `solve_ivp` with a compiled right-hand side (Radau where LSODA fails). "
    "*numba*: loops by hand, Tsit5, and Rosenbrock23 for Robertson. *Julia, published*: "
    + published.MACHINE
    + "."
)
PEERS = ("diffrax", "CasADi", "numbalsoda", "SciPy")
TARGET = "Robertson in at most 25 us"


def cases(quick: bool) -> Iterator[Case]:
    """All problems; quickly three of them."""
    problems = [published.lotka_volterra(), published.robertson(), classic.hires()]
    if not quick:
        problems += [
            published.pkpd(), published.pollution(), published.brusselator(), classic.orego(),
            classic.van_der_pol(), classic.three_body(),
        ]  # fmt: skip
    for problem in problems:
        yield contestants.case(problem, "value")
