"""Gradients beside DaCe AD, by the tests of a checkout of DaCe, unchanged.

DaCe's tests of NPBench's programs compute a gradient by DaCe and by JAX, in float32 or float64.
One is run with larger sizes; the compiled functions that it calls, with their arguments, are
recorded and timed.  wengert differentiates NPBench's NumPy program for the same arguments; which
result the objective sums is found by its value.

The checkout needs DaCe's own requirements (networkx at most 3.5), and moodycamel's concurrentqueue
headers in ``dace/external/moodycamel``.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import os
import re
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np

from .gradients import objective
from .interleaved import Contestant, medians
from .one_program import in_process
from .program import difference, names, parameters, program, results

TITLE = "Gradients beside DaCe AD"
TEXT = (
    "Median time of the gradient that a test of DaCe computes (in the dtype of the test, float32 "
    "in a third of them, with respect to one argument), by DaCe, by the JAX version of that test, "
    "and by wengert from NPBench's NumPy program, whose arguments are copied in the objective, as "
    "JAX's versions leave them as they are (DaCe's overwrite them). Sizes are NPBench's S where a "
    "test has them by name. The gradients of `correlation` and `softmax` are zero up to rounding, "
    "and the data of `mlp` overflow in single precision, so these three cannot be compared."
)
TARGET = "ahead of DaCe and JAX on each program"
PEERS = ["DaCe", "JAX"]


def dace_checkout() -> Path:
    """The checkout of DaCe, which DACE names."""
    return Path(os.environ["DACE"]).resolve()


def tests() -> dict[str, Path]:
    """The tests that have gradients, by the names of their programs."""
    folder = dace_checkout() / "tests" / "npbench"
    found = {}
    for path in sorted(folder.rglob("*_test.py")):
        if re.search(r"def run_\w+_autodiff\(", path.read_text()):
            found[path.stem.removesuffix("_test")] = path
    return found


class _Sizes(ast.NodeTransformer):
    """Replaces the sizes that a function assigns as numbers by others of the same name."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """``N = 20``, ``M, N = 20, 30`` or ``M, N = sizes["mini"]``."""
        target, value = node.targets[0], node.value
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        known = [isinstance(t, ast.Name) and t.id in self.sizes for t in targets]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Subscript) and all(known):
            value = ast.Tuple([value] * len(targets), ast.Load())
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        if len(values) != len(targets):
            return node
        new = [
            ast.Constant(self.sizes[t.id])
            if is_known and isinstance(t, ast.Name) and isinstance(v, ast.Constant | ast.Subscript)
            else v
            for t, v, is_known in zip(targets, values, known, strict=True)
        ]
        node.value = ast.Tuple(new, ast.Load()) if isinstance(target, ast.Tuple) else new[0]
        return ast.fix_missing_locations(node)


def module_of(path: Path, sizes: dict[str, int]) -> types.ModuleType:
    """A test as a module, its gradient at other sizes."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    name = next(n for n in vars(module) if n.startswith("run_") and n.endswith("_autodiff"))
    tree = ast.parse(path.read_text())
    found = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    # The lines keep their numbers: DaCe reads the source of nested functions from the file.
    changed = ast.Module([_Sizes(sizes).visit(found)], [])
    exec(compile(changed, str(path), "exec", dont_inherit=True), vars(module))
    vars(module)["autodiff"] = vars(module)[name]
    return module


class Recorded:
    """The last call of the function that a test compiles, by DaCe and by JAX."""

    def __init__(self) -> None:
        self.dace: tuple[Any, tuple[Any, ...], dict[str, Any]] | None = None
        self.jax: tuple[Any, tuple[Any, ...]] | None = None
        self.value: tuple[Any, Any] | None = None  # function, argnums

    def install(self) -> None:
        """Record calls from now on."""
        import dace
        import jax

        call, grad, jit = dace.SDFG.__call__, jax.grad, jax.jit

        def called(sdfg: Any, *args: Any, **kwargs: Any) -> Any:
            self.dace = sdfg, copied(args), dict(zip(kwargs, copied(kwargs.values()), strict=True))
            return call(sdfg, *args, **kwargs)

        def differentiated(fun: Any, argnums: Any = 0, **options: Any) -> Any:
            self.value = fun, argnums
            return grad(fun, argnums=argnums, **options)

        def compiled(fun: Any, **options: Any) -> Any:
            made = jit(fun, **options)

            def run(*args: Any) -> Any:
                self.jax = made, copied(args)
                return made(*args)

            return run

        dace.SDFG.__call__, jax.grad, jax.jit = called, differentiated, compiled


def copied(values: Any) -> tuple[Any, ...]:
    """Arrays that a call may modify, copied."""
    return tuple(x.copy() if isinstance(x, np.ndarray) else x for x in values)


def one(name: str, size: str, seconds: str) -> dict[str, Any]:
    """Measure one test in this process."""
    sys.path.insert(0, str(dace_checkout()))
    import dace
    import jax

    import wengert as wg

    dace.Config.set("default_build_folder", value=os.environ["DACE_BUILD"])
    given = program(name, size)
    sizes = {k: v for k, v in parameters(given.info, size).items() if isinstance(v, int)}
    module = module_of(tests()[name], sizes)
    recorded = Recorded()
    recorded.install()
    with contextlib.suppress(AssertionError):  # its tolerance is for other sizes; see below
        module.autodiff()
    assert recorded.dace and recorded.jax and recorded.value
    sdfg, args, kwargs = recorded.dace
    compiled = sdfg.compile()
    words = dict(kwargs)
    words.update(zip([n for n in sdfg.arg_names if n not in words], args, strict=False))
    target = next(k for k in words if k.startswith("gradient_") and not k.endswith("___return"))
    wanted = np.asarray(recorded.jax[0](*recorded.jax[1]))
    arrays = [jax.numpy.array(a) if isinstance(a, np.ndarray) else a for a in recorded.jax[1]]
    total = float(recorded.value[0](*arrays))

    # wengert: NPBench's program for the arguments of the same names.
    fun = given.implementation("numpy")
    known = {k: v for k, v in words.items() if k in given.arguments}
    ours = [known.get(k, given.arguments[k]) for k in given.arguments]
    ours = [np.asarray(a) if isinstance(a, np.ndarray | jax.Array) else a for a in ours]
    values = results(fun, list(copied(ours)))
    close = [
        abs(float(np.sum(x)) - total) / max(abs(total), 1e-30)
        if np.asarray(x).dtype.kind == "f"
        else float("inf")
        for x in values
    ]
    place = int(np.argmin(close))
    variable = list(given.arguments).index(target.removeprefix("gradient_"))
    gradient = wg.jit(wg.grad(objective(given, fun, [place]), variable))
    error = difference(np.asarray(gradient(*copied(ours))), wanted)
    contestants = {
        "wengert": Contestant(gradient, lambda: list(copied(ours))),
        "DaCe": Contestant(
            lambda arguments: compiled(**arguments),
            lambda: [dict(zip(words, copied(words.values()), strict=True))],
        ),
        "JAX": Contestant(
            recorded.jax[0],
            lambda: list(arrays),
            jax.block_until_ready,
        ),
    }
    found: dict[str, dict[str, Any]] = {}
    computed = dict(zip(words, copied(words.values()), strict=True))
    compiled(**computed)
    errors = {"wengert": error, "DaCe": difference(computed[target], wanted)}
    for label, wrong in errors.items():
        if not wrong < 1e-3:
            found[label] = {"wrong": wrong}
            del contestants[label]
    shape = "x".join(map(str, wanted.shape))
    for label, median in medians(contestants, float(seconds)).items():
        found[label] = {"median": median}
    found.setdefault("wengert", {})["difference"] = error
    return {"case": f"{name}, {shape}", "contestants": found}


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """Measure all tests, each in a process of its own."""
    if "DACE" not in os.environ:
        print("  DACE does not name a checkout of github.com/spcl/dace: not measured", flush=True)
        return []
    size = "tiny" if quick else os.environ.get("NPBENCH_SIZE", "S")
    seconds, cases = os.environ["BENCHMARK_SECONDS"], []
    with tempfile.TemporaryDirectory() as folder:
        variables = os.environ | {"DACE_BUILD": folder}
        for name in sorted(set(names()) & set(tests())):
            row = in_process("dace", name, size, seconds, environment=variables)
            cases.append(row if "case" in row else {"case": name, "contestants": {"DaCe": row}})
            print(f"  {name}", flush=True)
    return cases
