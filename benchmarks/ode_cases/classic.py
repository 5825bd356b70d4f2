"""Usual test problems of solvers, without published times of derivatives.

    hires          8 species, growth of plants in light (Schaefer 1975)
    orego          the oregonator, relaxation oscillations (Field and Noyes 1974)
    van_der_pol    the relaxation oscillator, stiffness as a parameter
    three_body     the orbit of Arenstorf (1963), which closes after one period

Equations as in Hairer and Wanner, Solving Ordinary Differential Equations, I.0 and IV.10.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .problem import Problem

PERIOD = 17.0652165601579625588917206249


def _hires(t: Any, y: Any, p: Any) -> tuple[Any, ...]:
    bound, loose = 280.0 * y[5] * y[7], 1.81 * y[6]
    return (
        p[0] * (-1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007),
        1.71 * y[0] - 8.75 * y[1],
        -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
        8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
        -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
        -bound + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
        bound - loose,
        loose - bound,
    )


def hires() -> Problem:
    """To time 321.8122; the parameter is a factor of the first equation."""
    start = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057])
    return Problem(
        "HIRES", _hires, start, np.ones(1), 321.8122, np.linspace(0.0, 321.8122, 21),
        rtol=1e-6, atol=1e-9, stiff=True, steps=512,
    )  # fmt: skip


def _orego(t: Any, y: Any, p: Any) -> tuple[Any, ...]:
    return (
        p[0] * (y[1] + y[0] * (1.0 - p[1] * y[0] - y[1])),
        (y[2] - (1.0 + y[0]) * y[1]) / p[0],
        p[2] * (y[0] - y[2]),
    )


def orego() -> Problem:
    """To time 30, the first peak."""
    return Problem(
        "OREGO", _orego, np.array([1.0, 2.0, 3.0]), np.array([77.27, 8.375e-6, 0.161]),
        30.0, np.linspace(0.0, 30.0, 21), rtol=1e-6, atol=1e-8, stiff=True, steps=16384,
    )  # fmt: skip


def _van_der_pol(t: Any, y: Any, p: Any) -> tuple[Any, ...]:
    return y[1], p[0] * ((1.0 - y[0] * y[0]) * y[1]) - y[0]


def van_der_pol(stiffness: float = 100.0) -> Problem:
    """To twice the stiffness: more than one period."""
    end = 2.0 * stiffness
    return Problem(
        "van der Pol", _van_der_pol, np.array([2.0, 0.0]), np.array([stiffness]),
        end, np.linspace(0.0, end, 21), rtol=1e-6, atol=1e-8, stiff=True, steps=2048,
    )  # fmt: skip


def _three_body(t: Any, y: Any, p: Any) -> tuple[Any, ...]:
    moon, earth = p[0], 1.0 - p[0]
    a, b = y[0] + moon, y[0] - earth
    far, near = (a * a + y[1] * y[1]) ** 1.5, (b * b + y[1] * y[1]) ** 1.5
    return (
        y[2],
        y[3],
        y[0] + 2.0 * y[3] - earth * a / far - moon * b / near,
        y[1] - 2.0 * y[2] - earth * y[1] / far - moon * y[1] / near,
    )


def three_body() -> Problem:
    """One period; the parameter is the mass of the moon."""
    start = np.array([0.994, 0.0, 0.0, -2.00158510637908252240537862224])
    return Problem(
        "three bodies", _three_body, start, np.array([0.012277471]), PERIOD,
        np.linspace(0.0, PERIOD, 21), rtol=1e-9, atol=1e-9, precise=True, steps=1024,
    )  # fmt: skip
