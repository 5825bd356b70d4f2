"""check_grads: comparison of the derivatives of a function with finite differences.

Reverse mode is compared entry by entry with differences of the forward function, forward mode
along random directions; the two are transposes of each other; and order k checks the derivative
of order k - 1 in the same way, as a function of the point and of its cotangents or tangents.  With
``entries=False`` both are compared with the same differences along one random direction, to which
every entry contributes: this detects an error in any entry, which is then located entry by entry.

Central differences with steps that shrink by a constant factor, extrapolated to step zero by
Neville's scheme (Ridders 1982, Adv. Eng. Software 4(2), 75-76).  The best entry of the table comes
with an error estimate, so a comparison can distinguish a wrong rule from a difficult function.  The
table ends early where that error is a hundredth of the required accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.jvp_vjp import jvp, vjp
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import value_of
from wengert._engine.core.spec import spec_of
from wengert.errors import CheckError, StructureError, at, user_line

SHRINK = 1.6
STEPS = 9
FEWEST_STEPS = 4  # with fewer, entries may agree by chance
NEGLIGIBLE = 0.01  # fraction of the required error


def directional(f: Callable[[float], Any], scale: float = 1.0, needed: float = 0.0) -> Any:
    """The derivative of `f` at 0 and an estimate of its error, elementwise.

    Parameters
    ----------
    f : callable
        From a step (float) to an array; defined for steps up to `scale / 16`.
    scale : float
        A length over which `f` varies.
    needed : float
        Error above which successively shorter scales are tried, since a kink may be near. A
        hundredth of it is considered negligible.
    """
    enough = NEGLIGIBLE * needed
    best, worst = _extrapolated(f, scale, enough)
    for shorter in (scale / 32.0, scale / 1024.0):
        if not np.any(~(worst <= needed)):
            break
        other, error = _extrapolated(f, shorter, enough)
        better = (error < worst) | ~np.isfinite(worst)
        best, worst = np.where(better, other, best), np.where(better, error, worst)
    return best, worst


def _extrapolated(f: Callable[[float], Any], scale: float, enough: float) -> Any:
    h = scale / 16.0
    table: list[list[Any]] = []
    best: Any = None
    worst: Any = None
    with np.errstate(all="ignore"):
        for i in range(STEPS):
            row = [(np.asarray(f(h)) - np.asarray(f(-h))) / (2.0 * h)]
            factor = SHRINK * SHRINK
            for k in range(i):
                row.append((row[k] * factor - table[-1][k]) / (factor - 1.0))
                factor *= SHRINK * SHRINK
                error = np.maximum(np.abs(row[-1] - row[-2]), np.abs(row[-1] - table[-1][k]))
                if best is None:
                    best, worst = row[-1], error
                    continue
                better = (error < worst) | ~np.isfinite(worst)
                best, worst = np.where(better, row[-1], best), np.where(better, error, worst)
            if i + 1 >= FEWEST_STEPS and np.all(worst <= enough):
                break
            table.append(row)
            h /= SHRINK
    return best, worst


QUICK = 0.5  # fraction of the tolerance within which a difference of one step is accepted
TOLERANCE = {"f2": 5e-2, "f4": 5e-3, "f8": 2e-6, "c8": 5e-3, "c16": 2e-6}
MAX_ENTRIES = 60
START = np.asarray(1.0)  # the place of the cotangents on the line through them


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    entries: bool = True,
) -> None:
    """Compare derivatives of `f` with differences of `f` itself.

    Parameters
    ----------
    f : callable
        Takes and returns arrays or nested containers of them.
    args : sequence
        The point; floating and complex leaves are varied, others are constants.
    order : int, default 2
        Highest order of derivative to check.
    modes : sequence of {"fwd", "rev"}
        Which modes; every combination of them at order two and above.
    rtol, atol : float, optional
        Tolerances relative to the largest derivative; by default 2e-6 in double precision, 5e-3
        in single.
    seed : int
        Seed of the random directions.
    entries : bool, default True
        Whether the reverse mode is compared entry by entry, instead of along one random direction,
        whose cost does not grow with the number of entries.

    Raises
    ------
    CheckError
        A derivative is wrong; the message names the input, the index and both numbers.

    Notes
    -----
    Cost: 8 evaluations of `f` for each entry of a smooth function's arguments (at most 60 entries
    are checked), 18 where it is less smooth, and at order two those of the derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.testing import check_grads
    >>> check_grads(lambda x: np.sin(x) * x, (np.array([0.3, 2.0]),))
    """
    if not isinstance(args, tuple | list):
        raise StructureError(
            f"check_grads: args must be a tuple of arguments, (x,) for one{at(user_line())}."
        )
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise ValueError(f"modes may contain 'fwd' and 'rev', not {sorted(unknown)}")
    rng = np.random.default_rng(seed)
    how = _How(tuple(modes), rtol, atol, rng, entries)
    _check(f, tuple(args), order, how, getattr(f, "__name__", "f"))


class _How(NamedTuple):
    modes: tuple[str, ...]
    rtol: float | None
    atol: float | None
    rng: np.random.Generator
    entries: bool


def _check(f: Any, args: Any, order: int, how: _How, what: str, names: Any = None) -> None:
    modes, rng = how.modes, how.rng
    leaves, structure = pytree.flatten(args)
    leaves = [value_of(x) for x in leaves]
    slots = [i for i, x in enumerate(leaves) if _varies(x)]
    if order < 1 or not slots:
        return

    def of(*chosen: Any) -> Any:
        full = list(leaves)
        for i, x in zip(slots, chosen, strict=True):
            full[i] = x
        outs = pytree.flatten(converted(f)(*pytree.unflatten(structure, full)))[0]
        return tuple(y for y in outs if _varies(value_of(y)))

    point = tuple(np.asarray(leaves[i]) for i in slots)
    outs = [np.asarray(value_of(y)) for y in of(*point)]
    if not outs:
        return
    names = pytree.paths(args) if names is None else names
    places = [names[i] or "x" for i in slots]
    cotangents = tuple(_random_like(y, rng) for y in outs)
    tangents = tuple(_random_like(x, rng) for x in point)
    tol = _tolerance([*point, *outs], how.rtol, how.atol)
    if not how.entries:
        _check_direction(of, point, cotangents, tangents, places, tol, what, how)
    if "rev" in modes and how.entries:
        _check_reverse(of, point, cotangents, places, tol, what, rng)
    if "fwd" in modes and how.entries:
        _check_forward(of, point, tangents, tol, what)
    if order == 1:
        return
    # Along one line in the cotangents and tangents: a rule that calls a function whose own rule is
    # wrong has a derivative that is wrong with respect to these alone.
    if "rev" in modes:
        across = tuple(_random_like(y, rng) for y in outs)

        def pulled(*xs: Any) -> Any:
            *at, share = xs
            return vjp(of, *at)[1](_along(cotangents, across, share))

        _check(
            pulled, (*point, START), order - 1, how, f"the vjp of {what}", [*places, "(cotangent)"]
        )
    if "fwd" in modes:
        aside = tuple(_random_like(x, rng) for x in point)

        def pushed(*xs: Any) -> Any:
            *at, share = xs
            return jvp(of, tuple(at), _along(tangents, aside, share))[1]

        _check(
            pushed, (*point, START), order - 1, how, f"the jvp of {what}", [*places, "(tangent)"]
        )


def _along(vectors: Any, directions: Any, share: Any) -> Any:
    return tuple(
        (v + (share - 1.0) * d).astype(v.dtype) for v, d in zip(vectors, directions, strict=True)
    )


def _check_reverse(
    of: Any, point: Any, cotangents: Any, places: Any, tol: Any, what: str, rng: Any
) -> None:
    bars = [np.asarray(value_of(b)) for b in vjp(of, *point)[1](cotangents)]
    for i, (x, bar) in enumerate(zip(point, bars, strict=True)):
        size = max([float(np.abs(b).max()) for b in bars if b.size] + [1e-3])
        for index in _some_indices(x, rng):
            for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):

                def along(
                    h: float, i: int = i, x: Any = x, index: Any = index, unit: Any = unit
                ) -> Any:
                    moved = np.array(x)
                    moved[index] += h * unit
                    return _pairing(cotangents, of(*point[:i], moved, *point[i + 1 :]))

                want, error = directional(along, _scale(x[index]), tol[1] + tol[0] * size)
                got = bar[index].real if unit == 1.0 else bar[index].imag
                _compare(
                    got,
                    want,
                    error,
                    tol,
                    size,
                    f"{what}, reverse mode, argument {places[i]} at index {index}",
                )


def _check_forward(of: Any, point: Any, tangents: Any, tol: Any, what: str) -> None:
    got = _flat(jvp(of, point, tangents)[1])
    size = _size(got)
    want, error = _moved(of, point, tangents, tol[1] + tol[0] * size)
    for k in range(got.size):
        _compare(got[k], want[k], error[k], tol, size, f"{what}, forward mode, output element {k}")


def _check_direction(
    of: Any, point: Any, cotangents: Any, tangents: Any, places: Any, tol: Any, what: str, how: _How
) -> None:
    """Compare both modes with the differences along the tangents."""
    bars = vjp(of, *point)[1](cotangents) if "rev" in how.modes else ()
    got = _flat(jvp(of, point, tangents)[1]) if "fwd" in how.modes else None
    sizes = ([] if got is None else [_size(got)]) + [_size(_flat(bars)) for _ in bars[:1]]
    if _agree_at_one_step(of, point, tangents, (got, bars, cotangents, sizes, tol)):
        return
    want, error = _moved(of, point, tangents, tol[1] + tol[0] * min(sizes))
    for k in range(0 if got is None else got.size):
        place = f"{what}, forward mode, output element {k}"
        _compare(got[k], want[k], error[k], tol, sizes[0], place)  # type: ignore[index]
    if not bars:
        return
    weights = _flat(cotangents)
    paired = float(np.vdot(weights, want).real)
    found = _paired(tangents, bars)
    try:
        summed = float(np.sum(np.abs(weights) * np.abs(error)))
        _compare(found, paired, summed, tol, sizes[-1], f"{what}, reverse mode")
    except CheckError:
        _check_reverse(of, point, cotangents, places, tol, what, how.rng)  # which entry it is
        raise


def _agree_at_one_step(of: Any, point: Any, tangents: Any, found: Any) -> bool:
    """Whether both modes agree with a central difference, which costs two evaluations.

    What does not agree is compared with extrapolated differences, whose error is known.
    """
    got, bars, cotangents, sizes, (rtol, atol) = found
    width = max(np.finfo(x.dtype).eps for x in point)
    h = float(np.cbrt(width)) * _shortest(point)
    along = _line(of, point, tangents)
    with np.errstate(all="ignore"):
        want = (along(h) - along(-h)) / (2.0 * h)
    near = QUICK * (atol + rtol * np.maximum(np.abs(want), sizes[0]))
    if got is not None and not np.all(np.abs(got - want) <= near):
        return False
    paired = float(np.vdot(_flat(cotangents), want).real) if bars else 0.0
    near = QUICK * (atol + rtol * max(abs(paired), sizes[-1]))
    return not bars or abs(_paired(tangents, bars) - paired) <= near


def _paired(tangents: Any, bars: Any) -> float:
    """The inner product of the tangents and the cotangents of the arguments."""
    pairs = zip(tangents, bars, strict=True)
    return sum(float(np.vdot(v, np.asarray(value_of(b))).real) for v, b in pairs)


def _shortest(point: Any) -> float:
    """The least length over which the function is expected to vary."""
    return min((_scale(v) for x in point for v in np.ravel(x)), default=1.0)


def _line(of: Any, point: Any, tangents: Any) -> Callable[[float], Any]:
    """All outputs as a function of the step along the tangents."""

    def along(h: float) -> Any:
        pairs = zip(point, tangents, strict=True)
        return _flat(of(*[np.asarray(x + h * v).astype(x.dtype) for x, v in pairs]))

    return along


def _moved(of: Any, point: Any, tangents: Any, needed: float) -> Any:
    """Differences of all outputs along the tangents, and their errors."""
    return directional(_line(of, point, tangents), _shortest(point), needed)


def _flat(outs: Any) -> Any:
    return np.concatenate([np.ravel(np.asarray(value_of(y))) for y in outs])


def _size(x: Any) -> float:
    return max(float(np.abs(x).max()) if x.size else 0.0, 1e-3)


def _compare(got: Any, want: Any, error: Any, tol: Any, size: float, what: str) -> None:
    rtol, atol = tol
    allowed = atol + rtol * max(abs(want), size)
    if np.isfinite(want) and error > 20 * allowed:
        raise CheckError(
            f"{what}: differences do not converge ({want} with error {error}), so the result is "
            "inconclusive. Use a point where the function is smooth."
        )
    if not abs(got - want) <= allowed + 2 * float(error):
        raise CheckError(
            f"{what}: the derivative is {got}, but differences of the function give {want} "
            f"(their own error about {float(error):.1e})."
        )


def _varies(x: Any) -> bool:
    spec = None if isinstance(x, str | bytes) else spec_of(x)
    return spec is not None and not isinstance(spec, tuple) and spec.dtype.kind in "fc"


def _random_like(x: Any, rng: np.random.Generator) -> Any:
    v = rng.uniform(0.5, 1.5, np.shape(x)) * rng.choice([-1.0, 1.0], np.shape(x))
    if x.dtype.kind == "c":
        v = v + 1j * rng.uniform(-1.0, 1.0, np.shape(x))
    return np.asarray(v).astype(x.dtype)


def _pairing(cotangents: Any, outs: Any) -> float:
    total = 0.0
    for t, y in zip(cotangents, outs, strict=True):
        y = np.asarray(value_of(y))
        wide = np.complex128 if y.dtype.kind == "c" else np.float64
        total += float(np.vdot(t.astype(wide, copy=False), y.astype(wide, copy=False)).real)
    return total


def _scale(x: Any) -> float:
    return float(min(1.0, max(abs(x), 1e-3)))


def _some_indices(x: Any, rng: np.random.Generator) -> list[tuple[int, ...]]:
    everything = list(np.ndindex(*x.shape))
    if len(everything) <= MAX_ENTRIES:
        return everything
    return [everything[k] for k in rng.choice(len(everything), MAX_ENTRIES, replace=False)]


def _tolerance(arrays: Any, rtol: Any, atol: Any) -> tuple[float, float]:
    loosest = max(TOLERANCE.get(f"{a.dtype.kind}{a.dtype.itemsize}", 2e-6) for a in arrays)
    return (loosest if rtol is None else rtol), (loosest * 1e-2 if atol is None else atol)
