"""Operations by family; importing this package registers them.

Convolution and pooling are registered at first use.

casts              Casts, and the adjoint pair of broadcasting
cost_model         floating-point operations and bytes of a node; flops counts that operations state
creation           arrays of which only shape and rule are known: full, eye, arange
cumulative         running sums, products, extremes, and the recurrence behind them
fft                Discrete Fourier transforms along one axis, of which all of numpy.fft is made
indexing_batching  Indexing of many rows at once: the batching rules of getitem, setitem and
                   scatter
joining            several arrays into one
reductions         reductions cumulative sorting softmax
shape_rules        the specs of views, joins, orders and matrices by rule, exact for all sizes
shapes             reshape, transpose, axes of length one, reversal, rotation, diagonals, copies
side_effects       identities that do something on the way: print, keep, log, guard; and order
sorting            Order and counting: gathering along an axis, positions, bins; products of
                   sequences
value_summaries    what a log says of a value, and how a line of it is written
elementwise/       Elementwise operations
indexing/          reading and writing array elements by slices, masks and index arrays
linalg/            Operations on matrices: products, linear systems, factorizations, eigenvalues
neural/            Operations of neural networks: convolution, pooling, softmax
random/            Random bits as a function of a key and a position
"""

from wengert._engine.core.lazy_import import public_dir

from . import (
    casts,
    creation,
    cumulative,
    elementwise,
    fft,
    indexing,
    indexing_batching,
    joining,
    linalg,
    neural,
    random,
    reductions,
    shape_rules,
    shapes,
    side_effects,
    sorting,
)

__all__ = [
    "casts",
    "creation",
    "cumulative",
    "elementwise",
    "fft",
    "indexing",
    "indexing_batching",
    "joining",
    "linalg",
    "neural",
    "random",
    "reductions",
    "shape_rules",
    "shapes",
    "side_effects",
    "sorting",
]

__dir__ = public_dir(__name__)
