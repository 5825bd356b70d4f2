"""Shape inference by example: the shape of a result for all sizes, from runs with a few of them.

The fallback for operations without a shape rule, including user-defined ones.  The operation runs
on small arrays of ones at several sizes (probes).  Each length of the result is then looked for
among the lengths of the operands, their sums and products, and their quotients by small integers.
The expression agrees with all probes, and is checked again whenever the graph runs: if it does not
hold for other sizes, the result is an error and never a wrong value.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .spec import Spec, at_sizes, lengths_of, spec_of
from .static_params import sizes_of, substituted
from .symbolic.constraints import note_probed
from .symbolic.dim import Dim, is_symbolic, names_in, valued

# Distinct for each name and probe; all remainders modulo 2 and 3 occur among them.
_PROBES = ((11, 13, 17, 19), (16, 21, 24, 27), (12, 20, 26, 31), (23, 28, 33, 39))


def probed(op: Any, specs: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """The spec of the result of an operation, for all sizes.

    Raises
    ------
    ValueError
        No such expression gives the lengths of the result.
    """
    note_probed()
    dims = _dims_of(specs, params)
    names = sorted(names_in(dims))
    if len(names) > 4:
        raise ValueError(f"more than four sizes at once ({', '.join(names)})")
    probes = [dict(zip(names, sizes, strict=False)) for sizes in _PROBES]
    results = []
    for sizes in probes:
        examples = [op.example(at_sizes(s, sizes)) for s in specs]
        with np.errstate(all="ignore"):
            results.append(spec_of(op.run(*examples, **substituted(dict(params), sizes))))
    if isinstance(results[0], tuple):
        return tuple(
            _general([r[i] for r in results], dims, probes) for i in range(len(results[0]))
        )
    return _general(results, dims, probes)


def has_sizes(specs: Sequence[Any], params: Mapping[str, Any]) -> bool:
    """Whether a symbolic size occurs in the operands or the parameters."""
    if params and sizes_of(params if type(params) is dict else dict(params)):
        return True
    return any(is_symbolic(lengths_of(spec)) for spec in specs)


def _dims_of(specs: Sequence[Any], params: Mapping[str, Any]) -> list[Dim]:
    dims: dict[Any, None] = {}
    for spec in specs:
        dims.update(dict.fromkeys(n for n in lengths_of(spec) if isinstance(n, Dim)))
    for name in sizes_of(dict(params)):
        dims[Dim({((name, 1),): 1})] = None
    return list(dims)


def _general(results: list[Spec], dims: list[Dim], probes: list[dict[str, int]]) -> Spec:
    ranks = {r.ndim for r in results}
    if len(ranks) > 1:
        raise ValueError("the number of axes of the result depends on the sizes")
    shape = []
    for k in range(ranks.pop()):
        lengths = [r.shape[k] for r in results]
        shape.append(_length(lengths, dims, probes))
    return Spec(tuple(shape), results[0].dtype)


def _length(lengths: list[int], dims: list[Dim], probes: list[dict[str, int]]) -> Any:
    if len(set(lengths)) == 1:
        return lengths[0]
    for candidate in _candidates(dims):
        values = [valued(candidate, sizes) for sizes in probes]
        if values == lengths:
            return candidate
        differences = {a - b for a, b in zip(lengths, values, strict=True)}
        if len(differences) == 1:
            return candidate + differences.pop()
    for candidate, divisor in itertools.product(dims, range(2, 9)):
        for k in range(-divisor, 2 * divisor):
            quotient = (candidate + k) // divisor
            if [valued(quotient, sizes) for sizes in probes] == lengths:
                return quotient
    raise ValueError(
        f"no simple expression gives the lengths {lengths} of the result for the sizes {probes}"
    )


def _candidates(dims: list[Dim]) -> Iterator[Any]:
    yield from dims
    for a, b in itertools.combinations_with_replacement(dims, 2):
        yield a + b
        yield a * b
    for a, k in itertools.product(dims, range(2, 9)):
        yield a * k
    for a, b in itertools.permutations(dims, 2):
        yield a - b
    for a, b in itertools.product(dims, repeat=2):
        for k in range(2, 9):
            yield a * b * k
    for a, b, c in itertools.combinations_with_replacement(dims, 3):
        yield a * b * c
        yield a * b + c
