"""The derivative of the last state with respect to all parameters: forward sensitivities."""

from __future__ import annotations

from collections.abc import Iterator

from native.case import Case

from . import classic, contestants, published

TITLE = "Forward sensitivities: the last state and its Jacobian"
TEXT = (
    "With respect to 3 (Lotka-Volterra, Robertson), 14 (PKPD), 25 (pollution), 100 (Brusselator) "
    "and 1 parameters. *wengert*: forward mode of the steps taken, all directions together. "
    "*diffrax*: the same, `ForwardMode`. *CasADi*: the sensitivity equations of CVODES. "
    "*numba*: sensitivity equations by hand. *Julia, published*: " + published.MACHINE + "."
)
PEERS = ("diffrax", "CasADi")
TARGET = "Lotka-Volterra in at most 49 us, PKPD in 2.2 ms"


def cases(quick: bool) -> Iterator[Case]:
    """All problems; quickly two of them."""
    problems = [published.lotka_volterra(), published.robertson()]
    if not quick:
        problems += [
            published.pkpd(), published.pollution(), published.brusselator(), classic.hires(),
            classic.three_body(),
        ]  # fmt: skip
    for problem in problems:
        yield contestants.case(problem, "jacobian")
