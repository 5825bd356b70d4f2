"""Problems of W. Hock and K. Schittkowski, "Test Examples for Nonlinear Programming Codes", 1981.

Each has its number in the book, a function, where to begin, constraints with limits, bounds, and
the minimal value that the book gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FREE = (-np.inf, np.inf)


@dataclass
class Problem:
    """A problem; `minimum` is the minimal value."""

    number: int
    f: Callable[..., Any]
    start: list[float]
    minimum: float
    g: Callable[..., Any] | None = None
    lower: Any = None
    upper: Any = None
    bounds: list[tuple[float, float]] | None = None
    more: dict[str, Any] = field(default_factory=dict)


def hs1(x):
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


def hs6(x):
    return (1.0 - x[0]) ** 2


def hs7(x):
    return np.log(1.0 + x[0] ** 2) - x[1]


def hs10(x):
    return x[0] - x[1]


def hs12(x):
    return 0.5 * x[0] ** 2 + x[1] ** 2 - x[0] * x[1] - 7.0 * x[0] - 7.0 * x[1]


def hs14(x):
    return (x[0] - 2.0) ** 2 + (x[1] - 1.0) ** 2


def hs22(x):
    return (x[0] - 2.0) ** 2 + (x[1] - 1.0) ** 2


def hs24(x):
    return ((x[0] - 3.0) ** 2 - 9.0) * x[1] ** 3 / (27.0 * np.sqrt(3.0))


def hs26(x):
    return (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4


def hs28(x):
    return (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2


def hs35(x):
    return (
        9.0
        - 8.0 * x[0]
        - 6.0 * x[1]
        - 4.0 * x[2]
        + 2.0 * x[0] ** 2
        + 2.0 * x[1] ** 2
        + x[2] ** 2
        + 2.0 * x[0] * x[1]
        + 2.0 * x[0] * x[2]
    )


def hs39(x):
    return -x[0]


def hs43(x):
    squares = x[0] ** 2 + x[1] ** 2 + 2.0 * x[2] ** 2 + x[3] ** 2
    return squares - 5.0 * x[0] - 5.0 * x[1] - 21.0 * x[2] + 7.0 * x[3]


def of_hs43(x):
    a, b, c, d = x[0], x[1], x[2], x[3]
    return np.stack(
        [
            8.0 - a**2 - b**2 - c**2 - d**2 - a + b - c + d,
            10.0 - a**2 - 2.0 * b**2 - c**2 - 2.0 * d**2 + a + d,
            5.0 - 2.0 * a**2 - b**2 - c**2 - 2.0 * a + b + d,
        ]
    )


def hs48(x):
    return (x[0] - 1.0) ** 2 + (x[1] - x[2]) ** 2 + (x[3] - x[4]) ** 2


def hs65(x):
    return (x[0] - x[1]) ** 2 + (x[0] + x[1] - 10.0) ** 2 / 9.0 + (x[2] - 5.0) ** 2


def hs71(x):
    return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]


def hs76(x):
    squares = x[0] ** 2 + 0.5 * x[1] ** 2 + x[2] ** 2 + 0.5 * x[3] ** 2
    return squares - x[0] * x[2] + x[2] * x[3] - x[0] - 3.0 * x[1] + x[2] - x[3]


def hs77(x):
    return (
        (x[0] - 1.0) ** 2
        + (x[0] - x[1]) ** 2
        + (x[2] - 1.0) ** 2
        + (x[3] - 1.0) ** 4
        + (x[4] - 1.0) ** 6
    )


def hs78(x):
    return x[0] * x[1] * x[2] * x[3] * x[4]


def hs100(x):
    return (
        (x[0] - 10.0) ** 2
        + 5.0 * (x[1] - 12.0) ** 2
        + x[2] ** 4
        + 3.0 * (x[3] - 11.0) ** 2
        + 10.0 * x[4] ** 6
        + 7.0 * x[5] ** 2
        + x[6] ** 4
        - 4.0 * x[5] * x[6]
        - 10.0 * x[5]
        - 8.0 * x[6]
    )


def of_hs100(x):
    return np.stack(
        [
            127.0 - 2.0 * x[0] ** 2 - 3.0 * x[1] ** 4 - x[2] - 4.0 * x[3] ** 2 - 5.0 * x[4],
            282.0 - 7.0 * x[0] - 3.0 * x[1] - 10.0 * x[2] ** 2 - x[3] + x[4],
            196.0 - 23.0 * x[0] - x[1] ** 2 - 6.0 * x[5] ** 2 + 8.0 * x[6],
            -4.0 * x[0] ** 2
            - x[1] ** 2
            + 3.0 * x[0] * x[1]
            - 2.0 * x[2] ** 2
            - 5.0 * x[5]
            + 11.0 * x[6],
        ]
    )


def of_hs39(x):
    return np.stack([x[1] - x[0] ** 3 - x[2] ** 2, x[0] ** 2 - x[1] - x[3] ** 2])


def of_hs77(x):
    return np.stack([x[0] ** 2 * x[3] + np.sin(x[3] - x[4]), x[1] + x[2] ** 4 * x[3] ** 2])


def of_hs78(x):
    return np.stack(
        [np.sum(x * x) - 10.0, x[1] * x[2] - 5.0 * x[3] * x[4], x[0] ** 3 + x[1] ** 3 + 1.0]
    )


ROOT2, ROOT3 = np.sqrt(2.0), np.sqrt(3.0)
EQUAL = {"lower": 0.0, "upper": 0.0}

PROBLEMS = [
    Problem(1, hs1, [-2.0, 1.0], 0.0, bounds=[FREE, (-1.5, np.inf)]),
    Problem(6, hs6, [-1.2, 1.0], 0.0, lambda x: 10.0 * (x[1] - x[0] ** 2), **EQUAL),
    Problem(
        7, hs7, [2.0, 2.0], -ROOT3, lambda x: (1.0 + x[0] ** 2) ** 2 + x[1] ** 2 - 4.0, **EQUAL
    ),
    Problem(
        10,
        hs10,
        [-10.0, 10.0],
        -1.0,
        lambda x: -3.0 * x[0] ** 2 + 2.0 * x[0] * x[1] - x[1] ** 2 + 1.0,
        0.0,
    ),
    Problem(12, hs12, [0.0, 0.0], -30.0, lambda x: 25.0 - 4.0 * x[0] ** 2 - x[1] ** 2, 0.0),
    Problem(
        14,
        hs14,
        [2.0, 2.0],
        9.0 - 2.875 * np.sqrt(7.0),
        lambda x: np.stack([1.0 - 0.25 * x[0] ** 2 - x[1] ** 2, x[0] - 2.0 * x[1] + 1.0]),
        np.zeros(2),
        np.array([np.inf, 0.0]),
    ),
    Problem(
        22, hs22, [2.0, 2.0], 1.0, lambda x: np.stack([2.0 - x[0] - x[1], x[1] - x[0] ** 2]), 0.0
    ),
    Problem(
        24,
        hs24,
        [1.0, 0.5],
        -1.0,
        lambda x: np.stack([x[0] / ROOT3 - x[1], x[0] + ROOT3 * x[1], 6.0 - x[0] - ROOT3 * x[1]]),
        0.0,
        bounds=[(0.0, np.inf)] * 2,
    ),
    Problem(
        26,
        hs26,
        [-2.6, 2.0, 2.0],
        0.0,
        lambda x: (1.0 + x[1] ** 2) * x[0] + x[2] ** 4 - 3.0,
        **EQUAL,
    ),
    Problem(
        28, hs28, [-4.0, 1.0, 1.0], 0.0, lambda x: x[0] + 2.0 * x[1] + 3.0 * x[2] - 1.0, **EQUAL
    ),
    Problem(
        35,
        hs35,
        [0.5] * 3,
        1.0 / 9.0,
        lambda x: 3.0 - x[0] - x[1] - 2.0 * x[2],
        0.0,
        bounds=[(0.0, np.inf)] * 3,
    ),
    Problem(39, hs39, [2.0] * 4, -1.0, of_hs39, **EQUAL),
    Problem(43, hs43, [0.0] * 4, -44.0, of_hs43, 0.0),
    Problem(
        48,
        hs48,
        [3.0, 5.0, -3.0, 2.0, -2.0],
        0.0,
        lambda x: np.stack([np.sum(x) - 5.0, x[2] - 2.0 * (x[3] + x[4]) + 3.0]),
        **EQUAL,
    ),
    Problem(
        65,
        hs65,
        [-5.0, 5.0, 0.0],
        0.9535288567,
        lambda x: 48.0 - np.sum(x * x),
        0.0,
        bounds=[(-4.5, 4.5), (-4.5, 4.5), (-5.0, 5.0)],
    ),
    Problem(
        71,
        hs71,
        [1.0, 5.0, 5.0, 1.0],
        17.0140173,
        lambda x: np.stack([np.prod(x), np.sum(x * x)]),
        np.array([25.0, 40.0]),
        np.array([np.inf, 40.0]),
        bounds=[(1.0, 5.0)] * 4,
    ),
    Problem(
        76,
        hs76,
        [0.5] * 4,
        -4.681818181,
        lambda x: np.stack(
            [
                5.0 - x[0] - 2.0 * x[1] - x[2] - x[3],
                4.0 - 3.0 * x[0] - x[1] - 2.0 * x[2] + x[3],
                x[1] + 4.0 * x[2] - 1.5,
            ]
        ),
        0.0,
        bounds=[(0.0, np.inf)] * 4,
    ),
    Problem(
        77,
        hs77,
        [2.0] * 5,
        0.24150513,
        of_hs77,
        np.array([2.0 * ROOT2, 8.0 + ROOT2]),
        np.array([2.0 * ROOT2, 8.0 + ROOT2]),
    ),
    Problem(78, hs78, [-2.0, 1.5, 2.0, -1.0, -1.0], -2.91970041, of_hs78, **EQUAL),
    Problem(100, hs100, [1.0, 2.0, 0.0, 4.0, 0.0, 1.0, 1.0], 680.6300573, of_hs100, 0.0),
]
