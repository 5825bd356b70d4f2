"""Synthetic data sets: points and their classes, values or positions, from a seed.

class_sets     make_moons, make_circles, make_spirals, make_blobs, make_checkerboard; noise, random
               order and dtype of the samples of all of them
value_sets     make_regression, make_friedman, make_sine; make_s_curve, make_swiss_roll

Each function takes the number of samples and `rng`, a seed, a `numpy.random.Generator` or a key of
`wengert.random`, and returns a pair of arrays: points of shape (samples, features), and labels of
shape (samples,).  Equal seeds give equal data.  Samples are in random order.  Names and meanings
are those of scikit-learn where it has the set; the numbers differ.
"""

from wengert._engine.core.lazy_import import public_dir

from .class_sets import make_blobs, make_checkerboard, make_circles, make_moons, make_spirals
from .value_sets import make_friedman, make_regression, make_s_curve, make_sine, make_swiss_roll

__all__ = [
    "make_blobs",
    "make_checkerboard",
    "make_circles",
    "make_friedman",
    "make_moons",
    "make_regression",
    "make_s_curve",
    "make_sine",
    "make_spirals",
    "make_swiss_roll",
]

__dir__ = public_dir(__name__)
