"""Random programs: functions of a few arrays, made of the steps in random_program_steps.py.

    Bundle      several programs over the same inputs, compiled as one graph
    check       eager execution, the interpreter and native code give the same
    differing   which results of two runs are not the same

A step is tried on arrays first, and taken if all it gives are numbers of moderate size; so programs
are sound by construction, and what differs later is a fault.  Each value knows the precision that
it was computed in, which is the tolerance it is compared with.
"""

import warnings

import numpy as np

import wengert as wg
from wengert.testing.laws.native_code import Strict

from . import random_program_steps as steps

LENGTHS = (0, 1, 2, 3, 7, 8, 9, 16, 17, 33, 100)
NAMED = (2, 3, 7, 8, 9, 16, 17, 33)
MOST, LARGEST = 4000, 40.0  # elements of a value, and their size
PLACES = 2000  # tolerances count in units of the last place of the result's largest element


class Value:
    """What a step gave, in each world (set of lengths), and how precise it is."""

    def __init__(self, arrays, eps):
        self.arrays, self.eps = arrays, eps
        self.kind, self.ndim = arrays[0].dtype.kind, arrays[0].ndim


class Program:
    """A list of steps over inputs; `wanted` says which values are its results."""

    def __init__(self, rng, inputs, length=7):
        self.values = list(inputs)
        self.count = len(inputs)
        self.steps = []
        for _ in range(length * 4):
            if len(self.steps) < length:
                self._try(rng)
        made = range(self.count, len(self.values))
        some = {k for k in made if rng.random() < 0.2}
        self.wanted = sorted(some | {len(self.values) - 1})
        self.eps = [self.values[k].eps for k in self.wanted]

    def _pick(self, rng, kinds, ndim=0, exact=None):
        fits = [
            k
            for k, v in enumerate(self.values)
            if v.kind in kinds and v.ndim >= ndim and (exact is None or v.ndim == exact)
        ]
        if not fits:
            return None
        late = [k for k in fits if k >= self.count]
        return int(rng.choice(late if late and rng.random() < 0.75 else fits))

    def _try(self, rng):
        name, function, operands = self._proposal(rng)
        if None in operands:
            return
        arrays = []
        for world in range(len(self.values[0].arrays)):
            with np.errstate(all="raise", under="ignore"), warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    found = function(*[self.values[k].arrays[world] for k in operands])
                except (ValueError, IndexError, FloatingPointError, TypeError, RuntimeWarning):
                    return
            found = np.asarray(found)
            if found.size > MOST or found.ndim > 4 or found.dtype.kind == "c":
                return
            if found.dtype.kind == "f" and np.max(np.abs(found), initial=0.0) > LARGEST:
                return
            arrays.append(found)
        single = arrays[0].dtype == np.float32
        eps = max(
            [np.finfo(np.float32).eps if single else 0.0, *[self.values[k].eps for k in operands]]
        )
        self.values.append(Value(arrays, eps))
        self.steps.append((name, function, operands))

    def _proposal(self, rng):
        """A step at random: its name, the function, and which values it is of."""
        way = rng.integers(20)
        kinds = ("f", "f", "f", "f", "f", "i", "u", "b")[rng.integers(8)]
        if way < 5:
            x = self._pick(rng, kinds)
            rough = kinds == "f" and self._is_exact(x) and rng.random() < 0.35
            return _choice(rng, _UNARY[kinds, rough], x)
        if way < 9:
            x, y = self._pick(rng, kinds), self._pick(rng, kinds)
            rough = kinds == "f" and self._is_exact(x, y) and rng.random() < 0.35
            return _choice(rng, _BINARY[kinds, rough], x, y)
        if way < 12:
            x = self._pick(rng, kinds)
            rough = kinds == "f" and self._is_exact(x) and rng.random() < 0.35
            name, function, operands = _choice(rng, _REDUCE[kinds, rough], x)
            axes = _axes(rng, 0 if x is None else self.values[x].ndim)
            return name, lambda v: function(v, **axes), operands
        if way < 14:
            x = self._pick(rng, "f", 1)
            return _choice(
                rng, steps.ROUGH_ROWS if self._is_exact(x) and rng.random() < 0.3 else steps.ROWS, x
            )
        if way < 17:
            return _choice(rng, steps.PLACES, self._pick(rng, "fffib"[rng.integers(5)], 1))
        if way < 18:
            return _choice(rng, steps.SQUARE, self._pick(rng, "f", exact=2))
        return _choice(rng, steps.TOGETHER, self._pick(rng, "f", 1), self._pick(rng, "f", 1))

    def _is_exact(self, *operands):
        return all(k is not None and self.values[k].eps < 1e-12 for k in operands)

    def run(self, inputs):
        """The results, for inputs of any kind."""
        values = list(inputs)
        for _, function, operands in self.steps:
            values.append(function(*[values[k] for k in operands]))
        return [values[k] for k in self.wanted]

    def __str__(self):
        lines = [
            f"%{k} = input {v.arrays[0].dtype}{[a.shape for a in v.arrays]}"
            for k, v in enumerate(self.values[: self.count])
        ]
        for k, (name, _, operands) in enumerate(self.steps, self.count):
            v = self.values[k]
            lines.append(
                f"%{k} = {name} {operands}  {v.arrays[0].dtype}{[a.shape for a in v.arrays]}"
            )
        return "\n".join([*lines, f"results {self.wanted}"])


_NONE = {}
_UNARY = {
    ("f", False): steps.SMOOTH,
    ("f", True): steps.ROUGH,
    ("i", False): steps.WHOLE,
    ("u", False): steps.WHOLE,
    ("b", False): steps.TRUTH,
}
_BINARY = {
    ("f", False): steps.SMOOTH_PAIRS,
    ("f", True): steps.ROUGH_PAIRS,
    ("i", False): steps.WHOLE_PAIRS,
    ("u", False): steps.WHOLE_PAIRS,
    ("b", False): steps.TRUTH_PAIRS,
}
_REDUCE = {
    ("f", False): steps.REDUCTIONS,
    ("f", True): steps.ROUGH_REDUCTIONS,
    ("i", False): steps.WHOLE_REDUCTIONS,
    ("u", False): steps.WHOLE_REDUCTIONS,
    ("b", False): steps.WHOLE_REDUCTIONS,
}


def _choice(rng, table, *operands):
    name = list(table)[rng.integers(len(table))]
    return name, table[name], operands


def _axes(rng, ndim):
    """Arguments of a reduction: no axis, one, several; kept or not."""
    found = {"keepdims": bool(rng.integers(2))}
    if ndim and rng.random() < 0.75:
        count = int(rng.integers(1, ndim + 1))
        axes = tuple(int(a) for a in rng.permutation(ndim)[:count] - ndim * rng.integers(2))
        found["axis"] = axes[0] if count == 1 else axes
    return found


class Bundle:
    """Several programs over the same inputs.

    Attributes
    ----------
    worlds : list of list of array
        For each set of lengths the inputs.
    specs : list
        What a graph is traced for: arrays, or specs with names.
    """

    def __init__(self, seed, count=8, named=False):
        rng = np.random.default_rng(seed)
        self.seed, self.named = seed, named
        choices = NAMED if named else LENGTHS
        sets = [rng.choice(choices, 3, replace=not named) for _ in range(2 if named else 1)]
        self.worlds = [_inputs(rng, *map(int, s)) for s in sets]
        values = [
            Value(list(arrays), np.finfo(np.float32).eps if arrays[0].dtype == np.float32 else 0.0)
            for arrays in zip(*self.worlds, strict=True)
        ]
        self.specs = _named_specs(self.worlds[0]) if named else self.worlds[0]
        self.programs = [Program(rng, values) for _ in range(count)]
        if named:
            self.programs = [p for p in self.programs if _is_traceable(p, self.specs)]
        self.eps = [e for p in self.programs for e in p.eps]
        self.coarse = max(self.eps, default=0.0)

    def values(self, *inputs):
        """The results of all programs, side by side."""
        return [y for p in self.programs for y in p.run(inputs)]

    def loss(self, *inputs):
        """One number that depends on every floating result."""
        total = np.sum(inputs[0]) * 0.1
        for y in self.values(*inputs):
            if y.dtype.kind == "f":
                total = total + np.sum(np.sin(y)) * 0.5
        return total

    @property
    def slots(self):
        """The inputs that have derivatives."""
        return tuple(k for k, x in enumerate(self.worlds[0]) if x.dtype.kind == "f")

    def gradient(self, *inputs):
        """The derivative of the loss."""
        return list(wg.grad(self.loss, self.slots)(*inputs))

    def second(self, *inputs):
        """The derivative of the gradient along a direction."""

        def slope(*xs):
            return sum(np.sum(np.cos(g)) for g in self.gradient(*xs))

        return list(wg.grad(slope, self.slots)(*inputs))

    def sizes(self, world):
        """The symbolic lengths."""
        if not self.named:
            return {}
        (n, m), k = world[0].shape, world[5].shape[1]
        return {"n": n, "m": m, "k": k}

    def layouts(self):
        """For each input how it lies in memory, at random: C, F or S."""
        return "".join(np.random.default_rng(self.seed).choice(list("CFS"), len(self.worlds[0])))

    def __str__(self):
        return "\n\n".join([f"seed {self.seed}", *map(str, self.programs)])


def _inputs(rng, a, b, c):
    return [
        rng.normal(size=(a, b)),
        rng.normal(size=(a, b)),
        rng.normal(size=b),
        rng.normal(size=(a, 1)),
        np.asarray(rng.normal()),
        rng.normal(size=(b, c)),
        rng.normal(size=(2, a, b)),
        rng.normal(size=(a, b)).astype(np.float32),
        rng.integers(-4, 5, size=(a, b)),
        rng.normal(size=(a, b)) > 0,
        rng.integers(0, 9, size=b).astype(np.uint8),
        rng.normal(size=c).astype(np.float32),
        rng.integers(-3, 4, size=(c, 1)).astype(np.int32),
    ]


def _named_specs(inputs):
    a, b = inputs[0].shape
    names = {a: "n", b: "m", inputs[5].shape[1]: "k", 1: 1, 2: 2}
    shapes = [("n", "m"), ("n", "m"), ("m",), ("n", 1), (), ("m", "k"), (2, "n", "m"), ("n", "m"),
              ("n", "m"), ("n", "m"), ("m",), ("k",), ("k", 1)]  # fmt: skip
    assert len(names) >= 3
    return [wg.spec(s, x.dtype) for s, x in zip(shapes, inputs, strict=True)]


def _is_traceable(program, specs):
    try:
        wg.trace(lambda *xs: program.run(xs))(*specs)
    except wg.errors.WengertError:
        return False
    return True


def is_differentiable(bundle):
    """Whether NumPy has the gradient: some have no maximum, of which one would be there."""
    try:
        for world in bundle.worlds:
            with np.errstate(all="ignore"):
                bundle.gradient(*world)
    except wg.errors.ShapeError as error:
        assert "zero-size array" in str(error), error
        return False
    return True


def differing(got, wanted, eps, factor=1.0):
    """The positions of results that are not the same, and by how much."""
    found = []
    for k, (g, w) in enumerate(zip(got, wanted, strict=True)):
        g, w = np.asarray(g), np.asarray(w)
        if g.dtype != w.dtype or g.shape != w.shape:
            found.append((k, f"{g.dtype}{g.shape} instead of {w.dtype}{w.shape}"))
        elif w.dtype.kind != "f":
            if not np.array_equal(g, w):
                found.append((k, f"{g} instead of {w}"))
        else:
            one = eps[k] if isinstance(eps, list) else eps
            unit = max(one, float(np.finfo(w.dtype).eps))
            scale = max(1.0, float(np.max(np.abs(w), initial=0.0)))
            far = np.max(np.abs(g - w), initial=0.0)
            if not far <= PLACES * factor * unit * scale:
                found.append((k, f"off by {far / scale}, with a unit of {unit}"))
    return found


def laid(array, layout, rng):
    """The same numbers in another layout: a view, and the array it is part of."""
    if layout == "C" or array.ndim == 0:
        base = np.ascontiguousarray(array).reshape(array.shape)
        return base, base
    if layout == "F":
        base = np.ascontiguousarray(array.T)
        return base.T, base
    axes = rng.permutation(array.ndim)
    steps = rng.choice([-3, -2, -1, 1, 1, 2], array.ndim)
    lengths = [(array.shape[a] - 1) * abs(steps[a]) + 1 if array.shape[a] else 0 for a in axes]
    base = np.ones(lengths, array.dtype) * (np.nan if array.dtype.kind == "f" else 1)
    base = base.astype(array.dtype)
    view = base[tuple(slice(None, None, steps[a]) for a in axes)].transpose(np.argsort(axes))
    view[...] = array
    return view, base


FUNCTIONS = {"values": 1.0, "gradient": 50.0, "second": 5000.0}  # and how tolerances grow


def check(seed, what, threads=1, simplified=None):
    """Compare eager execution, the interpreter and native code; how many programs were compared."""
    bundle = Bundle(seed, named=seed % 3 == 2)
    if what != "values" and not is_differentiable(bundle):
        return 0
    function, factor = getattr(bundle, what), FUNCTIONS[what]
    with np.errstate(all="ignore"):
        graph = wg.trace(function)(*bundle.specs)
    if seed % 2 if simplified is None else simplified:
        graph = graph.simplify()
    eps = bundle.eps if what == "values" else bundle.coarse
    native, served = Strict(threads), 0
    for world in bundle.worlds:
        with np.errstate(all="ignore"):
            wanted = function(*world)
            try:
                runs = {"interpreter": graph(*world), "native": graph.run(*world, backend=native)}
            except wg.errors.ShapeError as error:  # a diagonal of rows too short, a maximum of none
                assert bundle.named, error
                assert "is not valid for" in str(error) or "zero-size" in str(error), error
                continue
        if seed % 4 == 0:
            layouts = bundle.layouts()
            rng = np.random.default_rng(seed)
            views = [laid(x, how, rng)[0] for x, how in zip(world, layouts, strict=True)]
            compiled = native.native.compiled(graph, layouts)
            runs[layouts] = compiled.run(views, bundle.sizes(world))
        served = len(bundle.programs)
        for name, found in runs.items():
            bad = differing(found, wanted, eps, factor)
            assert not bad, f"{name}: {bad}\n{bundle}"
    return served
