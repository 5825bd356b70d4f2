"""Random bits as a function of a key and a position.

bits    Random numbers as operations: a pure function of a state and a position
keys    Keys of random numbers as operations: many from one, and one from a key and a number
philox  Philox 4x64 on NumPy arrays: the words of a block, as a function of its counter and a key
"""

from . import bits, keys

__all__ = [
    "bits",
    "keys",
]
