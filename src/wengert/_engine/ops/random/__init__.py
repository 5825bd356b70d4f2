"""Random bits as a function of a key and a position.

bits            random bits and numbers as functions of a key and a position; Philox 4x64 on NumPy
                arrays; keys derived from a key: split and fold_in
tail_functions  distributions as functions of tail probabilities, the same bits in all backends;
                tables of numbers in files
"""

from . import bits, tail_functions

__all__ = [
    "bits",
    "tail_functions",
]
