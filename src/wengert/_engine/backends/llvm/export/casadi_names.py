"""The functions by which CasADi's `external` finds, describes and calls an exported function.

    casadi_source    their text in C, for a function, its Jacobian and the Jacobian of that

`external("NAME_casadi", "./file.so")` loads the function, and derives it by `jac_NAME_casadi`, and
that by `jac_jac_NAME_casadi`.  All inputs and outputs are dense, except that Jacobians do not
depend on the outputs of the function, which CasADi gives them as inputs.  CasADi stores matrices by
columns, passes null for zeros and for results that it does not need, and gives memory in numbers,
which hold copies of all inputs and outputs, and the workspace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wengert._engine.core.spec import Spec
from wengert.errors import BackendError, at, user_line

from .exported import Exported

_NUMBER_BYTES = 8
_NUMBER = Spec((), np.dtype(np.float64))
_COPIES = """
static void casadi_by_rows__(double *to, const double *from, size_t rows, size_t columns) {
    size_t i, j;
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++) to[i * columns + j] = from ? from[j * rows + i] : 0.0;
}

/* A derivative of an array (r, c) with respect to an array (m, n): a matrix (r * c, m * n). */
static void casadi_by_columns__(
    double *to, const double *from, size_t r, size_t c, size_t m, size_t n) {
    size_t i, j, k, l;
    for (i = 0; i < r; i++)
        for (j = 0; j < c; j++)
            for (k = 0; k < m; k++)
                for (l = 0; l < n; l++)
                    to[((l * m + k) * c + j) * r + i] = from[((i * c + j) * m + k) * n + l];
}
"""
_SECOND_COPIES = """
/* A derivative of such a derivative with respect to an array (p, q). */
static void casadi_second__(
    double *to, const double *from, size_t r, size_t c, size_t m, size_t n, size_t p, size_t q) {
    size_t i, j, k, l, a, b;
    for (i = 0; i < r; i++)
        for (j = 0; j < c; j++)
            for (k = 0; k < m; k++)
                for (l = 0; l < n; l++)
                    for (a = 0; a < p; a++)
                        for (b = 0; b < q; b++)
                            to[((((b * p + a) * n + l) * m + k) * c + j) * r + i] =
                                from[((((i * c + j) * m + k) * n + l) * p + a) * q + b];
}
"""
_HEAD = """
typedef long long int casadi_int__;
{prototypes}
"""


def casadi_source(value: Exported, jacobian: Exported, second: Exported | None = None) -> str:
    """The text of the functions.

    Parameters
    ----------
    value, jacobian : Exported
        The function, and its derivatives with respect to all inputs: for each output those with
        respect to each input.
    second : Exported, optional
        The derivatives of these derivatives with respect to all inputs.

    Raises
    ------
    BackendError
        An input or output is not of float64, has more than two axes, or symbolic sizes.
    """
    if not value.inputs or not value.outputs:
        raise BackendError(
            f"CasADi calls functions with inputs and outputs, and {value.name} has none. Leave "
            f"casadi=True out{at(user_line())}."
        )
    for name, spec in (*value.inputs, *value.outputs):
        if spec.dtype != np.float64 or spec.ndim > 2 or value.sizes:
            raise BackendError(
                f"CasADi has matrices of float64 of known sizes, and {name} of {value.name} is "
                f"{spec}. Give shapes of integers with at most two axes, or leave casadi=True out"
                f"{at(user_line())}."
            )
    name = f"{value.name}_casadi"
    inputs, outputs = [s for _, s in value.inputs], [s for _, s in value.outputs]
    pairs = [(o, i) for o in outputs for i in inputs]
    own = _functions(name, value, inputs, [(o, _NUMBER) for o in outputs], [])
    names = [n for n, _ in value.inputs], [n for n, _ in value.outputs]
    own += _description(name, *names, inputs, [_matrix(o) for o in outputs])
    jac = _functions(f"jac_{name}", jacobian, inputs, pairs, outputs)
    blocks = [f"jac_{o}_{i}" for o in names[1] for i in names[0]]
    given = [*names[0], *[f"out_{o}" for o in names[1]]]
    shapes = [(_count(o), _count(i)) for o, i in pairs]
    jac += _description(f"jac_{name}", given, blocks, [*inputs, *outputs], shapes)
    copies = _COPIES
    if second is not None:
        copies += _SECOND_COPIES
        jac += _second(name, second, (inputs, outputs), given, blocks)
    prototypes = "\n".join(
        line.split(" {")[0] + ";"
        for line in (own + jac).splitlines()
        if line.startswith(("int ", "casadi_int__ ", "const "))
    )
    return (_HEAD.format(prototypes=prototypes) + copies + own + jac).lstrip("\n")


def _second(
    name: str,
    made: Exported,
    specs: tuple[Sequence[Spec], Sequence[Spec]],
    given: Sequence[str],
    blocks: Sequence[str],
) -> str:
    """The Jacobian of the Jacobian, whose inputs and outputs are `given` and `blocks`."""
    inputs, outputs = specs
    pairs = [(o, i) for o in outputs for i in inputs]
    results: list[tuple[Spec, ...] | None] = []
    shapes, names = [], []
    for block, (o, i) in zip(blocks, pairs, strict=True):
        results += [(o, i, k) for k in inputs] + [None] * len(outputs)
        rows = _count(o) * _count(i)
        shapes += [(rows, _count(k)) for k in (*inputs, *outputs)]
        names += [f"jac_{block}_{k}" for k in given]
    nominal = [Spec((_count(o), _count(i)), np.dtype(np.float64)) for o, i in pairs]
    title, empty = f"jac_jac_{name}", [k for k, r in enumerate(results) if r is None]
    text = _functions(title, made, inputs, results, [*outputs, *nominal])
    listed = [*given, *[f"out_{block}" for block in blocks]]
    every = [*inputs, *outputs, *nominal]
    return text + _description(title, listed, names, every, shapes, empty)


def _matrix(spec: Spec) -> tuple[int, int]:
    shape = (*spec.shape, 1, 1)[:2]
    return int(shape[0]), int(shape[1])


def _count(spec: Spec) -> int:
    return math.prod(_matrix(spec))


def _functions(
    name: str,
    made: Exported,
    inputs: Sequence[Spec],
    results: Sequence[tuple[Spec, ...] | None],
    nominal: Sequence[Spec],
) -> str:
    """The function, and the memory that it needs.

    `results` are derivatives of an array with respect to one or two others; of values the other one
    is a number, and None is a derivative that is zero.  `nominal` are further arguments, which are
    not used.
    """
    lines, place, passed = [], 0, []
    for k, spec in enumerate(inputs):
        r, c = _matrix(spec)
        lines.append(f"    casadi_by_rows__(w + {place}, arg[{k}], {r}, {c});")
        passed.append(f"w + {place}")
        place += r * c
    copies = []
    for k, arrays in enumerate(results):
        if arrays is None:
            continue
        sizes = ", ".join(str(n) for spec in arrays for n in _matrix(spec))
        function = "casadi_by_columns__" if len(arrays) == 2 else "casadi_second__"
        copies.append(f"    if (res[{k}]) {function}(res[{k}], w + {place}, {sizes});")
        passed.append(f"w + {place}")
        place += math.prod(map(_count, arrays))
    given, count, more = len(inputs) + len(nominal), len(results), _NUMBER_BYTES - 1
    body = "\n".join(lines)
    after = "\n".join(copies)
    return f"""
int {name}(const double **arg, double **res, casadi_int__ *iw, double *w, int mem) {{
    (void)iw;
    (void)mem;
{body}
    if ({made.name}({", ".join(passed)}, w + {place}, {made.name}_work())) return 1;
{after}
    return 0;
}}

int {name}_work(casadi_int__ *args, casadi_int__ *ress, casadi_int__ *iws, casadi_int__ *ws) {{
    if (args) *args = {given};
    if (ress) *ress = {count};
    if (iws) *iws = 0;
    if (ws) *ws = {place} + (casadi_int__)(({made.name}_work() + {more}) / {_NUMBER_BYTES});
    return 0;
}}
"""


def _description(
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    specs: Sequence[Spec],
    shapes: Sequence[tuple[int, int]],
    empty: Sequence[int] = (),
) -> str:
    """The functions that return numbers, names and shapes of inputs and outputs.

    `empty` are the numbers of outputs whose elements are all zero, and not stored.
    """
    text = ""
    for way, names, sizes in (
        ("in", inputs, [_matrix(s) for s in specs]),
        ("out", outputs, list(shapes)),
    ):
        listed = ", ".join(f'"{n}"' for n in names)
        zero = set(empty if way == "out" else ())
        longest = max([3, *(sizes[k][1] + 3 for k in zero)])
        # After the shape 1 for all elements, or where each column begins, which is 0 of none.
        dense = ", ".join(f"{{{r}, {c}, {int(k not in zero)}}}" for k, (r, c) in enumerate(sizes))
        text += f"""
casadi_int__ {name}_n_{way}(void) {{ return {len(names)}; }}

const char *{name}_name_{way}(casadi_int__ i) {{
    static const char *const names[{len(names)}] = {{{listed}}};
    return i >= 0 && i < {len(names)} ? names[i] : 0;
}}

const casadi_int__ *{name}_sparsity_{way}(casadi_int__ i) {{
    static const casadi_int__ shapes[{len(names)}][{longest}] = {{{dense}}};
    return i >= 0 && i < {len(names)} ? shapes[i] : 0;
}}
"""
    return text
