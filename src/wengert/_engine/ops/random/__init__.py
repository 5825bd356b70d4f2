"""Random bits as a function of a key and a position.

bits    random bits and numbers as functions of a key and a position
keys    keys derived from a key: split and fold_in
philox  Philox 4x64 on NumPy arrays
"""

from . import bits, keys

__all__ = [
    "bits",
    "keys",
]
