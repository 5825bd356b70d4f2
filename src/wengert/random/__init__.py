"""Random numbers: draws as functions of keys, and streams that move along by themselves.

    wengert.draws    ``normal(key, shape)``, ``gamma(key, a)`` ...: functions of a key; here too
    stream           `Stream`: a key and a position, held by a variable
    generator        `Generator`: numpy.random's methods over a stream

What is drawn depends on the key, or on the seed of a stream and how many drawings came before, and
on nothing else.
"""

from wengert._engine.core.lazy_import import public_dir

from .. import draws
from ..draws import *  # noqa: F403 - its `__all__`
from .generator import Generator, default_rng
from .stream import Stream

__all__ = ["Generator", "Stream", "default_rng", *draws.__all__]

__dir__ = public_dir(__name__)
