"""Random numbers: functions of a key, and stateful streams.

    normal(key, shape), gamma(key, a) ...    samples as functions of key and parameters
    Stream                                   a key and a position, held by a variable
    Generator, default_rng                   the methods of numpy.random over a stream

keys.py                 key, split, fold_in, bits; broadcasting of parameters to the shape of the
result inverse_transform.py    distributions sampled by functions of uniform numbers
gamma_and_multivariate.py  gamma and distributions derived from it: beta, dirichlet, t ...; von
Mises; multivariate normal, points of balls, rotations integers_and_counts.py  integers, booleans,
permutations, choices; poisson, binomial, multinomial ...  rejection_samplers.py   the proposals of
rejection samplers; rejection sampling, element by element functions.py            all functions of
a key in one namespace stream.py               Stream generator.py            Generator

The functions return the same numbers in eager mode, in graphs, compiled, under `vmap` and in loops,
and plain arrays for plain arguments.  The numbers of a stream depend on its seed and on the number
of previous draws.
"""

from wengert._engine.core.lazy_import import public_dir

from . import functions
from .functions import *  # noqa: F403 - its `__all__`
from .generator import Generator, default_rng
from .stream import Stream

__all__ = ["Generator", "Stream", "default_rng", *functions.__all__]

__dir__ = public_dir(__name__)
