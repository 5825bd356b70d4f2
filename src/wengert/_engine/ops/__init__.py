"""Operations by family; importing this package registers them.

Convolution and pooling are registered at first use.

casts              casts; broadcasting and its adjoint
cost_model         the cost of a node: operations and bytes; counts of floating-point operations,
                   for `Cost.flops`
creation           full, eye, arange
cumulative         cumulative sums, products and extremes; linear recurrences
debug_callbacks    calls of Python functions for debugging, in loops too; summaries of values in
                   logs
fft                discrete Fourier transforms
indexing_batching  batching rules of getitem, setitem, scatter and scatter_add
joining            concatenate, stack
messages           tokens that order the messages of collective operations
reductions         sum, prod, max, mean, variance ...
shape_rules        shape rules that several operations share, and those of views, joins, sorting and
                   matrices, exact for symbolic sizes
shapes             reshape, transpose, squeeze, flip, roll, diagonals, copies
side_effects       print, store, log and check values; ordering of such operations
sorting            sort, argsort, searchsorted, histogram counts; convolution of sequences
sparse_products    products with sparse matrices
elementwise/       elementwise operations
indexing/          reading and writing array elements by slices, masks and index arrays
linalg/            products, linear systems, factorizations, eigenvalues
neural/            convolution, pooling, softmax
random/            random bits as a function of a key and a position
"""

from wengert._engine.core.lazy_import import public_dir

from . import (
    casts,
    creation,
    cumulative,
    debug_callbacks,
    elementwise,
    fft,
    indexing,
    indexing_batching,
    joining,
    linalg,
    messages,
    neural,
    random,
    reductions,
    shape_rules,
    shapes,
    side_effects,
    sorting,
    sparse_products,
)

__all__ = [
    "casts",
    "creation",
    "cumulative",
    "debug_callbacks",
    "elementwise",
    "fft",
    "indexing",
    "indexing_batching",
    "joining",
    "linalg",
    "messages",
    "neural",
    "random",
    "reductions",
    "shape_rules",
    "shapes",
    "side_effects",
    "sorting",
    "sparse_products",
]

__dir__ = public_dir(__name__)
