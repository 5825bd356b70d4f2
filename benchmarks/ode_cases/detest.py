"""The 25 problems of DETEST (Hull, Enright, Fellen and Sedgwick, SIAM J. Numer. Anal. 9, 1972).

    PROBLEMS    A1 to E5: right-hand side f(t, y) on NumPy arrays, first state
    EXACT       the solutions in closed form that are known
    END         time to which all of them go

Classes: A single equations, B small systems, C systems of moderate size, D orbits, E equations of
higher order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Field = Callable[[Any, Any], Any]

END = 20.0


def _b1(t: Any, y: Any) -> Any:
    met = y[0] * y[1]
    return np.stack((2.0 * (y[0] - met), met - y[1]))


def _b2(t: Any, y: Any) -> Any:
    return np.stack((y[1] - y[0], y[0] - 2.0 * y[1] + y[2], y[1] - y[2]))


def _b3(t: Any, y: Any) -> Any:
    squared = y[1] ** 2
    return np.stack((-y[0], y[0] - squared, squared))


def _b4(t: Any, y: Any) -> Any:
    r = np.sqrt(y[0] ** 2 + y[1] ** 2)
    return np.stack((-y[1] - y[0] * y[2] / r, y[0] - y[1] * y[2] / r, y[0] / r))


def _b5(t: Any, y: Any) -> Any:
    return np.stack((y[1] * y[2], -y[0] * y[2], -0.51 * y[0] * y[1]))


def _linear(matrix: Any) -> Field:
    return lambda t, y: matrix @ y


def _chain(decay: Any) -> Field:
    """Radioactive decay, one into the next."""
    return _linear(np.diag(-np.append(decay, 0.0)) + np.diag(decay, -1))


def _heat(n: int) -> Field:
    """Conduction along a rod."""
    beside = np.ones(n - 1)
    return _linear(np.diag(np.full(n, -2.0)) + np.diag(beside, 1) + np.diag(beside, -1))


GRAVITY, SUN = 2.95912208286, 1.00000597682
MASSES = np.array([9.54786104043e-4, 2.85583733151e-4, 4.37273164546e-5,
                   5.17759138449e-5, 2.77777777778e-6])  # fmt: skip
PLANETS = np.array([
    [3.42947415189, 6.64145542550, 11.2630437207, -30.1552268759, -21.1238353380],
    [3.35386959711, 5.97156957878, 14.6952576794, 1.65699966404, 28.4465098142],
    [1.35494901715, 2.18231499728, 6.27960525067, 1.43785752721, 15.3882659679],
])  # fmt: skip
SPEEDS = np.array([
    [-0.557160570446, -0.415570776342, -0.325325669158, -0.024047625417, -0.176860753121],
    [0.505696783289, 0.365682722812, 0.189706021964, -0.287659532608, -0.216393453025],
    [0.230578543901, 0.169143213293, 0.087726532278, -0.117219543175, -0.014864789309],
])  # fmt: skip


def _planets(t: Any, y: Any) -> Any:
    """Five outer planets about the sun: C5."""
    place, speed = y[:15].reshape(3, 5), y[15:]
    apart = place[:, None, :] - place[:, :, None]  # from each planet (middle) to each other
    cubed = (np.sum(apart**2, axis=0) + np.eye(5)) ** 1.5
    sunward = place / np.sum(place**2, axis=0) ** 1.5
    others = MASSES * (1.0 - np.eye(5))
    pulled = np.sum(others * (apart / cubed - sunward[:, None, :]), axis=2)
    return np.concatenate((speed, (GRAVITY * (pulled - (SUN + MASSES) * sunward)).ravel()))


def _orbit(t: Any, y: Any) -> Any:
    cubed = (y[0] ** 2 + y[1] ** 2) ** 1.5
    return np.stack((y[2], y[3], -y[0] / cubed, -y[1] / cubed))


def _perihelion(eccentricity: float) -> Any:
    speed = np.sqrt((1.0 + eccentricity) / (1.0 - eccentricity))
    return np.array([1.0 - eccentricity, 0.0, 0.0, speed])


def _e1(t: Any, y: Any) -> Any:
    """Bessel's equation of order 1/2, at t + 1."""
    x = t + 1.0
    return np.stack((y[1], -(y[1] / x + (1.0 - 0.25 / x**2) * y[0])))


def _e2(t: Any, y: Any) -> Any:
    return np.stack((y[1], (1.0 - y[0] ** 2) * y[1] - y[0]))


def _e3(t: Any, y: Any) -> Any:
    return np.stack((y[1], y[0] ** 3 / 6.0 - y[0] + 2.0 * np.sin(2.78535 * t)))


def _e4(t: Any, y: Any) -> Any:
    return np.stack((y[1], 0.032 - 0.4 * y[1] ** 2))


def _e5(t: Any, y: Any) -> Any:
    return np.stack((y[1], np.sqrt(1.0 + y[1] ** 2) / (25.0 - t)))


def _first(n: int) -> Any:
    return np.eye(n)[0]


PROBLEMS: dict[str, tuple[Field, Any]] = {
    "A1": (lambda t, y: -y, np.ones(1)),
    "A2": (lambda t, y: -0.5 * y**3, np.ones(1)),
    "A3": (lambda t, y: y * np.cos(t), np.ones(1)),
    "A4": (lambda t, y: 0.25 * y * (1.0 - 0.05 * y), np.ones(1)),
    "A5": (lambda t, y: (y - t) / (y + t), np.array([4.0])),
    "B1": (_b1, np.array([1.0, 3.0])),
    "B2": (_b2, np.array([2.0, 0.0, 1.0])),
    "B3": (_b3, _first(3)),
    "B4": (_b4, np.array([3.0, 0.0, 0.0])),
    "B5": (_b5, np.array([0.0, 1.0, 1.0])),
    "C1": (_chain(np.ones(9)), _first(10)),
    "C2": (_chain(np.arange(1.0, 10.0)), _first(10)),
    "C3": (_heat(10), _first(10)),
    "C4": (_heat(51), _first(51)),
    "C5": (_planets, np.concatenate((PLANETS.ravel(), SPEEDS.ravel()))),
    "D1": (_orbit, _perihelion(0.1)),
    "D2": (_orbit, _perihelion(0.3)),
    "D3": (_orbit, _perihelion(0.5)),
    "D4": (_orbit, _perihelion(0.7)),
    "D5": (_orbit, _perihelion(0.9)),
    "E1": (_e1, np.array([0.6713967071418030, 0.09540051444747446])),
    "E2": (_e2, np.array([2.0, 0.0])),
    "E3": (_e3, np.zeros(2)),
    "E4": (_e4, np.array([30.0, 0.0])),
    "E5": (_e5, np.zeros(2)),
}


def _kepler(eccentricity: float) -> Callable[[float], Any]:
    """Place on the ellipse with semiaxis 1, by Kepler's equation."""

    def place(t: float) -> Any:
        anomaly = t
        for _ in range(50):
            residual = anomaly - eccentricity * np.sin(anomaly) - t
            anomaly = anomaly - residual / (1.0 - eccentricity * np.cos(anomaly))
        minor = np.sqrt(1.0 - eccentricity**2)
        return np.array([np.cos(anomaly) - eccentricity, minor * np.sin(anomaly)])

    return place


EXACT: dict[str, Callable[[float], Any]] = {  # the first components
    "A1": lambda t: np.array([np.exp(-t)]),
    "A2": lambda t: np.array([1.0 / np.sqrt(t + 1.0)]),
    "A3": lambda t: np.array([np.exp(np.sin(t))]),
    "A4": lambda t: np.array([20.0 / (1.0 + 19.0 * np.exp(-t / 4.0))]),
    "B2": lambda t: 1.0 + np.array([0.5, 0.0, -0.5]) * np.exp(-t)
    + np.array([0.5, -1.0, 0.5]) * np.exp(-3.0 * t),
    "D1": _kepler(0.1),
    "D2": _kepler(0.3),
    "D3": _kepler(0.5),
    "D4": _kepler(0.7),
    "D5": _kepler(0.9),
    "E4": lambda t: np.array([30.0 + 2.5 * np.log(np.cosh(0.08 * np.sqrt(2.0) * t))]),
    "E5": lambda t: np.array([12.5 * np.log(25.0 / (25.0 - t)) - (50.0 * t - t**2) / 100.0]),
}  # fmt: skip
