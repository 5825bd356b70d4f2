"""A user module whose variables the tests change."""

import numpy as np

SCALE = 2.0
ARRAY = np.ones(12)


def scaled(v):
    return v * SCALE


def weighted(v, i):
    if v > 0.3:
        return v * ARRAY[i]
    return v
