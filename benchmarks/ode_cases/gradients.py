"""A loss of the states at many times, and its gradient with respect to all parameters."""

from __future__ import annotations

from collections.abc import Iterator

from native.case import Case

from . import classic, contestants, published

TITLE = "Gradients: a loss and its derivative"
TEXT = (
    "The sum of (1 - y)^2 / 2 over the states at 21 (Lotka-Volterra), 101 (PKPD, Brusselator), 121 "
    "(pollution) or 16 to 21 times, with its gradient with respect to 3, 14, 100, 25 and 1 to 3 "
    "parameters; the error is that of both. *wengert*: reverse mode of the steps taken. "
    "*diffrax*: the same, `RecursiveCheckpointAdjoint`. *CasADi*: the continuous adjoint of "
    "CVODES; *CasADi, forward*: its sensitivity equations. *numba*: sensitivity equations by "
    "hand. *Julia, published*: " + published.MACHINE + "."
)
PEERS = ("diffrax", "CasADi")
TARGET = (
    "Lotka-Volterra in at most 128 us, pollution in 6.1 ms, Brusselator in 92 ms; at most 4 times "
    "the value"
)


def cases(quick: bool) -> Iterator[Case]:
    """All problems; quickly two of them."""
    problems = [published.lotka_volterra(), published.robertson()]
    if not quick:
        problems += [
            published.pkpd(), published.pollution(), published.brusselator(), classic.hires(),
            classic.three_body(),
        ]  # fmt: skip
    for problem in problems:
        yield contestants.case(problem, "gradient")
