"""Coefficients of the Radau IIA method of order 5, as SciPy's `Radau` uses them.

NODES, WEIGHTS           times of the three stages, and the matrix of the method, h A f = Z
ERROR                    of the embedded formula
REAL, COMPLEX            eigenvalues of the inverse of the matrix: a real one and one of a pair
VECTORS, INVERSE         the real transformation to its block diagonal form, and the inverse
INTERPOLANT              powers of theta in the collocation polynomial, for each stage

The new state is that of the last stage.  The source is E. Hairer, G. Wanner, Solving Ordinary
Differential Equations II (1996), IV.5 and IV.8.  `tests/integrate/test_tables.py` checks the order
conditions and the transformation.
"""

Row = tuple[float, ...]

_S6 = 6.0**0.5
_CUBE_ROOT = 3.0 ** (1 / 3)

# fmt: off
NODES: Row = ((4 - _S6) / 10, (4 + _S6) / 10, 1.0)
WEIGHTS: tuple[Row, ...] = (
    ((88 - 7 * _S6) / 360, (296 - 169 * _S6) / 1800, (-2 + 3 * _S6) / 225),
    ((296 + 169 * _S6) / 1800, (88 + 7 * _S6) / 360, (-2 - 3 * _S6) / 225),
    ((16 - _S6) / 36, (16 + _S6) / 36, 1 / 9),
)
ERROR: Row = ((-13 - 7 * _S6) / 3, (-13 + 7 * _S6) / 3, -1 / 3)
REAL = 3 + 3 ** (2 / 3) - _CUBE_ROOT
COMPLEX = (3 + 0.5 * (_CUBE_ROOT - 3 ** (2 / 3)) - 0.5j * (3 ** (5 / 6) + 3 ** (7 / 6)))
VECTORS: tuple[Row, ...] = (
    (0.09443876248897524, -0.14125529502095421, 0.03002919410514742),
    (0.25021312296533332, 0.20412935229379994, -0.38294211275726192),
    (1.0, 1.0, 0.0),
)
INVERSE: tuple[Row, ...] = (
    (4.17871859155190428, 0.32768282076106237, 0.52337644549944951),
    (-4.17871859155190428, -0.32768282076106237, 0.47662355450055044),
    (0.50287263494578682, -2.57192694985560522, 0.59603920482822492),
)
INTERPOLANT: tuple[Row, ...] = (
    (13 / 3 + 7 * _S6 / 3, -23 / 3 - 22 * _S6 / 3, 10 / 3 + 5 * _S6),
    (13 / 3 - 7 * _S6 / 3, -23 / 3 + 22 * _S6 / 3, 10 / 3 - 5 * _S6),
    (1 / 3, -8 / 3, 10 / 3),
)
# fmt: on
