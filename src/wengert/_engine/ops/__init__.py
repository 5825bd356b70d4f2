"""Families of operations; importing this package registers them all.

elements     arithmetic exponential circular hyperbolic special rounding complexes choice logic;
             gated
reductions   reductions cumulative sorting softmax
arrays       creation shapes joining casts; indexing, with indices masks index_shapes indexing_rows
matrices     products linalg factorizations packed determinants spectral polar, confluence;
             accepting; linalg_results
sequences    fourier
pictures     convolution pooling, with windows (imported at first use)
other        effects (summaries: what a log says); random, with keys, on philox

What is said of many of them beside their entries: result_shapes, the specs of results; costs, what
a line takes of time and memory.
"""

from wengert._engine.core.lazy_import import public_dir

from . import (
    accepting,
    arithmetic,
    casts,
    choice,
    circular,
    complexes,
    creation,
    cumulative,
    determinants,
    effects,
    exponential,
    factorizations,
    fourier,
    gated,
    hyperbolic,
    indexing,
    indexing_rows,
    joining,
    keys,
    linalg,
    logic,
    packed,
    polar,
    products,
    random,
    reductions,
    result_shapes,
    rounding,
    shapes,
    softmax,
    sorting,
    special,
    spectral,
)

__all__ = [
    "accepting",
    "arithmetic",
    "casts",
    "choice",
    "circular",
    "complexes",
    "creation",
    "cumulative",
    "determinants",
    "effects",
    "exponential",
    "factorizations",
    "fourier",
    "gated",
    "hyperbolic",
    "indexing",
    "indexing_rows",
    "joining",
    "keys",
    "linalg",
    "logic",
    "packed",
    "polar",
    "products",
    "random",
    "reductions",
    "result_shapes",
    "rounding",
    "shapes",
    "softmax",
    "sorting",
    "spectral",
    "special",
]

__dir__ = public_dir(__name__)
