"""Stiff problems with reference solutions, from the test set for initial value problem solvers.

The references are those of the test set (University of Bari), which have at least 8 digits.
"""

import numpy as np

RATES = np.array([0.04, 1e4, 3e7])


def robertson(t, y, rates=RATES):
    a, b, c = rates[0] * y[0], rates[1] * y[1] * y[2], rates[2] * y[1] * y[1]
    return np.stack([b - a, a - b - c, c])


def robertson_dae(t, y, rates=RATES):
    a, b, c = rates[0] * y[0], rates[1] * y[1] * y[2], rates[2] * y[1] * y[1]
    return np.stack([b - a, a - b - c, y[0] + y[1] + y[2] - 1.0])


def van_der_pol(t, y):
    return np.stack([y[1], 1e3 * (1.0 - y[0] ** 2) * y[1] - y[0]])


def hires(t, y):
    bound = 280.0 * y[5] * y[7]
    return np.stack(
        [
            -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
            1.71 * y[0] - 8.75 * y[1],
            -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
            8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
            -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
            -bound + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
            bound - 1.81 * y[6],
            1.81 * y[6] - bound,
        ]
    )


def oregonator(t, y):
    return np.stack(
        [
            77.27 * (y[1] + y[0] * (1.0 - 8.375e-6 * y[0] - y[1])),
            (y[2] - (1.0 + y[0]) * y[1]) / 77.27,
            0.161 * (y[0] - y[2]),
        ]
    )


# the function, the initial state, the end, and the state there
PROBLEMS = {
    "robertson": (
        robertson,
        [1.0, 0.0, 0.0],
        40.0,
        [0.7158270687193941, 9.185534764557338e-6, 0.2841637457458413],
    ),
    "van der Pol": (van_der_pol, [2.0, 0.0], 2000.0, [1.706167732170483, -0.8928097010247975e-3]),
    "hires": (
        hires,
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057],
        321.8122,
        [
            0.7371312573325668e-3,
            0.1442485726316185e-3,
            0.5888729740967575e-4,
            0.1175651343283149e-2,
            0.2386356198831331e-2,
            0.6238968252742796e-2,
            0.2849998395185769e-2,
            0.2850001604814231e-2,
        ],
    ),
    "oregonator": (
        oregonator,
        [1.0, 2.0, 3.0],
        360.0,
        [0.1000814870318523e1, 0.1228178521549917e4, 0.1320554942846706e3],
    ),
}
