"""Families of operations; importing this package registers them all."""

from . import (
    arithmetic,
    casts,
    choice,
    circular,
    exponential,
    indexing,
    logic,
    products,
    reductions,
    shapes,
)

__all__ = [
    "arithmetic",
    "casts",
    "choice",
    "circular",
    "exponential",
    "indexing",
    "logic",
    "products",
    "reductions",
    "shapes",
]
