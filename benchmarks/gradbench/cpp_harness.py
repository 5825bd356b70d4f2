"""Exported functions in GradBench's C++ harness, beside its derivatives by hand.

    PYTHONPATH=src:benchmarks python -m gradbench.cpp_harness PATH [EVAL ...]

PATH is a checkout of gradbench/gradbench with the header cpp/json.hpp.  For an input of each eval
the derivative of our program is exported for its sizes, as C and as an object file, and linked
with a class of the harness that calls it.  The executables, and those of tools/manual, read the
same file; outputs are compared, and times are the medians that the harness takes.  Everything is
written to a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import wengert as wg
from gradbench.evals import det, gmm, hello, kmeans, llsq, lse, lstm, ode

FLAGS = "-O3 -march=native -Wno-unknown-pragmas"
SECONDS = 0.5
WITHIN = 1e-8  # relative to the largest number


@dataclass(frozen=True)
class Eval:
    """How the harness calls one derivative.

    function : its name in GradBench.
    given : which input of the suite is taken, by number, or an input.
    derivative : from the input to the function, and to the arrays that it takes.
    output : the type of the output, in C++.
    resize : C++ that gives the output its size.
    inputs, outputs : their addresses in C++, of `_input` and `output`.
    """

    function: str
    given: Any
    derivative: Callable[[dict[str, Any]], tuple[Callable[..., Any], tuple[Any, ...]]]
    output: str
    inputs: Sequence[str]
    outputs: Sequence[str] = ("output.data()",)
    resize: str = "output.resize(_input.x.size());"


def of_gmm(given: dict[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The gradient of the posterior, with respect to four arrays."""
    f = gmm.log_posterior(*(given[name] for name in ("d", "k", "n", "m", "gamma")))
    arrays = tuple(np.array(given[name], float) for name in (*gmm.PARAMETERS, "x"))
    return wg.grad(f, argnums=(0, 1, 2, 3)), arrays


GMM = """output.d = _input.d; output.k = _input.k; output.n = _input.n;
    output.alpha.resize(_input.alpha.size()); output.mu.resize(_input.mu.size());
    output.q.resize(_input.q.size()); output.l.resize(_input.l.size());"""
# Of the published inputs the gradient is zero, as the last of 1,000 elements is not reached; by
# hand it is that of the exact solution, a product.
ODE = {"x": np.linspace(0.9, 1.4, 20).tolist(), "s": 3000}
EVALS = {
    "hello": Eval(
        "double", 3.0, lambda x: (wg.grad(hello.square), (float(x),)),
        "DoubleOutput", ["&_input"], ["&output"], "",
    ),
    "llsq": Eval(
        "gradient", 6, lambda g: (wg.grad(llsq.objective(g["n"])), (np.array(g["x"]),)),
        "GradientOutput", ["_input.x.data()"],
    ),
    "lse": Eval(
        "gradient", 3, lambda g: (wg.grad(lse.logsumexp), (np.array(g["x"]),)),
        "GradientOutput", ["_input.x.data()"],
    ),
    "det": Eval(
        "gradient", 3, lambda g: (wg.grad(det.determinant(g["ell"])), (np.array(g["A"]),)),
        "GradientOutput", ["_input.A.data()"], resize="output.resize(_input.A.size());",
    ),
    "kmeans": Eval(
        "dir", 1, lambda g: (kmeans.direction, kmeans.arrays(g)),
        "DirOutput", ["_input.points.data()", "_input.centroids.data()"], ["output.dir.data()"],
        "output.k = _input.k; output.d = _input.d; output.dir.resize(_input.centroids.size());",
    ),
    "gmm": Eval(
        "jacobian", 1, of_gmm, "JacOutput",
        [f"_input.{name}.data()" for name in ("alpha", "mu", "q", "l", "x")],
        [f"output.{name}.data()" for name in gmm.PARAMETERS], GMM,
    ),
    "ode": Eval(
        "gradient", ODE,
        lambda g: (wg.grad(lambda x: ode.solve(x, g["s"])[-1]), (np.array(g["x"]),)),
        "GradientOutput", ["_input.x.data()"],
    ),
    "lstm": Eval(
        "jacobian", 1, lambda g: (wg.grad(lstm.objective, argnums=(0, 1)), lstm.arrays(g)),
        "JacOutput",
        [f"_input.{name}.data()" for name in ("main_params", "extra_params", "state", "sequence")],
        ["output.data()", "output.data() + _input.main_params.size()"],
        "output.resize(_input.main_params.size() + _input.extra_params.size());",
    ),
}  # fmt: skip
PROGRAM = """
#include "gradbench/evals/{eval}.hpp"
#include "gradbench/main.hpp"
#include "ours.h"
#include <cstdlib>

class Ours : public Function<{eval}::Input, {eval}::{output}> {{
  std::vector<double> work;
public:
  Ours({eval}::Input& input) : Function(input), work(ours_work() / sizeof(double) + 9) {{}}
  void compute({eval}::{output}& output) {{
    {resize}
    void* aligned = work.data();
    size_t space = work.size() * sizeof(double);
    std::align(64, ours_work(), aligned, space);
    if (ours({arguments}, aligned, ours_work())) std::abort();
  }}
}};

int main(int argc, char* argv[]) {{
  return generic_main(argc, argv, {{{{"{function}", function_main<Ours>}}}});
}}
"""


def run(command: Sequence[str | Path], folder: Path) -> str:
    """The output of a program, which must not fail."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    return done.stdout


def compiled(checkout: Path, folder: Path, name: str, given: Any, form: str) -> Path:
    """The executable with our function, exported as "c" or "object"."""
    chosen = EVALS[name]
    function, arrays = chosen.derivative(given)
    where = folder / {"c": "ours.c", "object": "ours.o"}[form]
    wg.compiling.export(function, where, arrays, name="ours", format=form)
    if form == "c":
        run(["gcc", "-std=c99", *FLAGS.split(), "-c", "ours.c", "-o", "ours.o"], folder)
    arguments = ", ".join((*chosen.inputs, *chosen.outputs))
    text = PROGRAM.format(eval=name, arguments=arguments, **vars(chosen))
    (folder / "main.cpp").write_text(text)
    flags = ["-std=c++17", *FLAGS.split(), f"-I{checkout / 'cpp'}", "-I."]
    run(["g++", *flags, "main.cpp", "ours.o", "-o", form, "-lm"], folder)
    return folder / form


def by_hand(checkout: Path, folder: Path, name: str) -> Path:
    """The executable of tools/manual."""
    flags = ["-std=c++17", *FLAGS.split(), f"-I{checkout / 'cpp'}"]
    source = checkout / "tools" / "manual" / f"{name}.cpp"
    run(["g++", *flags, source, "-o", "manual", "-lm"], folder)
    return folder / "manual"


def measured(program: Path, function: str) -> tuple[Any, float]:
    """The output, and the median of the times in seconds."""
    first, *rest = run([program, "input.json", function], program.parent).splitlines()
    times = [t["nanoseconds"] for t in map(json.loads, rest) if t["name"] == "evaluate"]
    return json.loads(first), median(times) / 1e9


def numbers(tree: Any) -> Any:
    """All numbers of an output, in order."""
    if isinstance(tree, dict):
        tree = [tree[name] for name in sorted(tree)]
    if isinstance(tree, list):
        return np.concatenate([numbers(item) for item in tree] or [np.zeros(0)])
    return np.array([tree], float)


def chosen_input(name: str) -> tuple[str, Any]:
    """What it is called, and the input."""
    given = EVALS[name].given
    if not isinstance(given, int):
        return "", given
    listed = import_module(f"gradbench.cases.{name}").inputs(False)
    return next(pair for k, pair in enumerate(listed) if k == given)


def judged(checkout: Path, name: str) -> bool:
    """Compile, run and compare one eval; whether the outputs agree."""
    chosen = EVALS[name]
    label, given = chosen_input(name)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        timed = given if name == "hello" else given | {"min_runs": 5, "min_seconds": SECONDS}
        (folder / "input.json").write_text(json.dumps(timed))
        programs = {"by hand": by_hand(checkout, folder, name)}
        programs |= {
            form: compiled(checkout, folder, name, given, form) for form in ("c", "object")
        }
        found = {who: measured(program, chosen.function) for who, program in programs.items()}
    right, base = numbers(found["by hand"][0]), found["by hand"][1]
    line, agrees = f"{name:7} {label:24} by hand {1e6 * base:10.1f} us", True
    for form in ("c", "object"):
        output, seconds = found[form]
        off = float(np.max(np.abs(numbers(output) - right)) / np.max(np.abs(right)))
        agrees = agrees and off < WITHIN
        line += f"   {form} {1e6 * seconds:10.1f} us ({seconds / base:.2f}, off {off:.0e})"
    print(line, flush=True)
    return agrees


def main() -> int:
    """Run the evals; returns 1 if one does not agree."""
    parser = argparse.ArgumentParser(description="exported functions in GradBench's C++ harness")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("evals", nargs="*", choices=[*EVALS, []])
    options = parser.parse_args()
    return int(not all([judged(options.checkout.resolve(), n) for n in options.evals or EVALS]))


if __name__ == "__main__":
    sys.exit(main())
