"""Random numbers: functions of a key, and streams that advance by themselves.

    normal(key, shape), gamma(key, a) ...    the same numbers for the same key and parameters
    Stream                                   a key and a position, held by a variable
    Generator, default_rng                   the methods of numpy.random over a stream

keys.py                 key, split, fold_in, bits
inverse_transform.py    distributions that are a function of uniform numbers
gamma_von_mises.py      gamma and distributions derived from it: beta, dirichlet, t ...; von Mises
multivariate.py         multivariate normal, points of balls, rotations
integers_and_choice.py  integers, booleans, permutations, choices
discrete_counts.py      poisson, binomial, multinomial ...
parameter_shapes.py     parameters broadcast to the shape of the result
rejection_loop.py       rejection sampling, element by element
rejection_samplers.py   the proposals that are accepted or rejected
functions.py            all functions of a key in one namespace
stream.py               Stream
generator.py            Generator

The functions give the same numbers wherever they run: eagerly, in a graph, compiled, under `vmap`,
in loops.  Of plain arrays they return plain arrays.  The numbers of a stream depend on its seed and
on how many were drawn before.
"""

from wengert._engine.core.lazy_import import public_dir

from . import functions
from .functions import *  # noqa: F403 - its `__all__`
from .generator import Generator, default_rng
from .stream import Stream

__all__ = ["Generator", "Stream", "default_rng", *functions.__all__]

__dir__ = public_dir(__name__)
