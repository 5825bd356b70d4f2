"""Constrained problems of CUTEst: optimal values beside the published ones and those of SciPy.

    python benchmarks/s2mpj.py PATH [PROBLEM ...]    PATH is a checkout of GrattonToint/S2MPJ
    --method NAME    "ipopt" or "trust-constr"; both by default
    --most N         the most unknowns and elements of a problem, 60

Without names, all problems of Hock and Schittkowski with constraints, and further ones, are solved.
The functions are traced as they stand in the files; their derivatives there, which were derived by
hand or by SIF's translator, are those of the comparison: gradient and Jacobian at the initial guess
must agree to 1e-10, and SciPy's SLSQP, or else trust-constr, solves the problem with them.  A value
agrees if it is that of the file or of SciPy, to 1e-5.  Nothing is written.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize

import wengert as wg

FURTHER = (
    "AIRPORT ALJAZZAF ALSOTAME AVGASA AVGASB BATCH BT1 BT2 BT3 BT4 BT5 BT6 BT7 BT8 BT9 BT10 "
    "BT11 BT12 BT13 BYRDSPHR CANTILVR CB2 CB3 CHACONN1 CHACONN2 CONGIGMZ CORE1 CSFI1 CSFI2 "
    "DEMBO7 DEMYMALO DIPIGRI DIXCHLNG DNIEPER DUAL4 DUALC1 DUALC2 DUALC5 DUALC8 EQC EXPFITA "
    "FCCU FLETCHER GENHS28 GIGOMEZ1 GIGOMEZ2 GIGOMEZ3 HAIFAS HIMMELBI HIMMELBK HIMMELP2 "
    "HIMMELP3 HIMMELP4 HIMMELP5 HIMMELP6 HONG HUBFIT KIWCRESC LAUNCH LEWISPOL LINSPANH LOADBAL "
    "LOOTSMA LOTSCHD LSNNODOC LSQFIT MADSEN MAKELA1 MAKELA2 MAKELA3 MAKELA4 MARATOS MATRIX2 "
    "MCONCON MIFFLIN1 MIFFLIN2 MINMAXBD MINMAXRB MISTAKE MWRIGHT ODFITS OPTCNTRL OPTPRLOC "
    "ORTHREGB PENTAGON POLAK1 POLAK2 POLAK3 POLAK4 POLAK5 POLAK6 PORTFL1 PORTFL2 PORTFL3 "
    "PORTFL4 PORTFL6 PRODPL0 PRODPL1 PT QC QCNEW ROSENMMX RK23 S268 SIMPLLPA SIMPLLPB SNAKE "
    "SPANHYD SPIRAL STANCMIN SUPERSIM SWOPF SYNTHES1 SYNTHES2 SYNTHES3 TAME TENBARS1 TFI2 "
    "TRUSPYR1 TRUSPYR2 TRY-B TWOBARS WOMFLET ZECEVIC2 ZECEVIC3 ZECEVIC4 ZY2"
).split()
AGREES, SAME_DERIVATIVE, FEASIBLE = 1e-5, 1e-10, 1e-6


def first(value: Any) -> Any:
    """The only element of an array, for tensors too."""
    return value.reshape(-1)[0] if hasattr(value, "reshape") else value


def name_of_file(name: str) -> str:
    """The name of the file and class of a problem: a name of CUTEst as an identifier."""
    stem = name.replace("-", "m").replace("+", "p")
    return f"n{stem}" if stem[0].isdigit() else stem


class Problem:
    """A problem as functions of a vector, from the data of a file."""

    def __init__(self, path: Path, name: str) -> None:
        stem = name_of_file(name)
        module = importlib.import_module(stem)
        self.given = getattr(module, stem)()
        self._module, self.name, self.size = module, name, int(self.given.n)
        text = (path / "python_problems" / f"{stem}.py").read_text()
        found = re.findall(r"^#\s*(?:LO\s+)?SOLTN\S*\s+(\S+)", text, re.M)
        groups = getattr(self.given, "grelt", ())
        self.elements = sum([len(g) for g in groups if g is not None])
        self.published = [v for v in map(_number, found) if v is not None]

    def group(self, k: int, x: Any) -> Any:
        """The value of a group: a function of linear terms and elements, scaled."""
        own, k = self.given, int(k)
        value: Any = -first(own.gconst[k]) if k < len(getattr(own, "gconst", ())) else 0.0
        if hasattr(own, "A") and k < own.A.shape[0]:
            row = own.A[k].toarray().reshape(-1)
            used = np.flatnonzero(row)
            if used.size:
                value = value + row[used] @ x[used]
        elements = own.grelt[k] if k < len(getattr(own, "grelt", ())) else ()
        for i, e in enumerate(() if elements is None else elements):
            part = x[np.array(list(own.elvar[int(e)]), int)].reshape(-1, 1)
            term = getattr(own, own.elftype[int(e)])(own, 1, part, int(e))
            value = value + own.grelw[k][i] * first(term)
        kinds = getattr(own, "grftype", ())
        kind = kinds[k] if k < len(kinds) else None
        if kind is not None and kind != "TRIVIAL":
            value = first(getattr(own, kind)(own, 1, value, k))
        scales = getattr(own, "gscale", ())
        scale = scales[k] if k < len(scales) else None
        return value if scale is None or abs(scale) <= 1e-15 else value / scale

    def objective(self, x: Any) -> Any:
        """The objective."""
        self._module.to_scalar = first
        self.given.getglobs()
        value: Any = 0.0
        if hasattr(self.given, "H"):
            value = 0.5 * (x @ (self.given.H.toarray() @ x))
        for k in getattr(self.given, "objgrps", ()):
            value = value + self.group(k, x)
        return value + 0.0 * x[0]

    def constraints(self, x: Any) -> Any:
        """The constraints, as one vector."""
        self._module.to_scalar = first
        self.given.getglobs()
        return np.stack([self.group(k, x) + 0.0 * x[0] for k in self.given.congrps])

    @property
    def start(self) -> Any:
        """The initial guess."""
        return np.array(self.given.x0, float).reshape(-1)

    @property
    def bounds(self) -> Any:
        """Lower and upper bounds."""
        ends = [np.array(e, float).reshape(-1) for e in (self.given.xlower, self.given.xupper)]
        return scipy.optimize.Bounds(*ends)

    @property
    def limits(self) -> tuple[Any, Any]:
        """Limits of the constraints."""
        own = self.given
        return np.array(own.clower, float).reshape(-1), np.array(own.cupper, float).reshape(-1)

    def difference_of_derivatives(self) -> float:
        """The largest difference from the derivatives of the file at the initial guess."""
        x = self.start
        pairs = [
            (wg.grad(self.objective)(x), self.given.fgx(x)[1]),
            (wg.jacobian(self.constraints)(x), self.given.cJx(x)[1].toarray()),
        ]
        return max(
            float(np.max(np.abs(a - np.reshape(b, a.shape)) / (1.0 + np.abs(a)))) for a, b in pairs
        )

    def by_scipy(self) -> float | None:
        """The value that SLSQP, or else trust-constr, finds with the derivatives of the file.

        None if both fail.
        """
        own, (lower, upper) = self.given, self.limits
        limits = scipy.optimize.NonlinearConstraint(
            lambda x: np.reshape(own.cx(x), (-1,)), lower, upper, lambda x: own.cJx(x)[1].toarray()
        )
        for method, options in (
            ("SLSQP", {"maxiter": 1000, "ftol": 1e-10}),
            ("trust-constr", {"maxiter": 2000, "gtol": 1e-9, "xtol": 1e-10}),
        ):
            try:
                found = scipy.optimize.minimize(
                    own.fx,
                    self.start,
                    jac=lambda x: np.reshape(own.fgx(x)[1], (-1,)),
                    bounds=self.bounds,
                    constraints=limits,
                    method=method,
                    options=options,
                )
            except (ValueError, ArithmeticError, TypeError):  # of NaN
                continue
            if found.success and getattr(found, "constr_violation", 0.0) < FEASIBLE:
                return float(found.fun)
        return None


def _number(text: str) -> float | None:
    try:
        return float(text.replace("D", "e"))
    except ValueError:
        return None


def agrees(value: float, others: list[float | None]) -> bool:
    """Whether a value is one of others."""
    known = [v for v in others if v is not None]
    return any(abs(value - v) <= AGREES * max(1.0, abs(v)) for v in known)


def problems(path: Path, names: list[str], most: int) -> Iterator[Problem]:
    """The constrained problems with an objective, up to a size."""
    sys.path[:0] = [str(path), str(path / "python_problems")]
    for name in names:
        try:
            problem = Problem(path, name)
        except (ImportError, AttributeError) as error:
            print(f"{name:12} cannot be read: {error}")
            continue
        has_constraints = getattr(problem.given, "m", 0) > 0
        has_objective = len(getattr(problem.given, "objgrps", ())) or hasattr(problem.given, "H")
        if has_constraints and has_objective and max(problem.size, problem.elements) <= most:
            yield problem


def run(problem: Problem, methods: list[str]) -> dict[str, Any]:
    """The values by the methods and by SciPy."""
    lower, upper = problem.limits
    row: dict[str, Any] = {"difference": problem.difference_of_derivatives()}
    row["SciPy"] = problem.by_scipy()
    for method in methods:
        begin = time.perf_counter()
        found = wg.optim.nlp(
            problem.objective,
            problem.start,
            problem.constraints,
            problem.bounds,
            lower=lower,
            upper=upper,
            method=method,
        )
        row[method] = float(found.fun) if found.success else None
        row[f"{method} s"] = time.perf_counter() - begin
    return row


def main() -> int:
    """Solve the problems, print a line for each, and count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("problems", nargs="*")
    parser.add_argument("--method", choices=["ipopt", "trust-constr"])
    parser.add_argument("--most", type=int, default=60)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = [given.method] if given.method else ["ipopt", "trust-constr"]
    hock = sorted(p.stem for p in (given.path / "python_problems").glob("HS*.py"))
    counts: dict[str, int] = dict.fromkeys(
        ["not traced", "problems", "derivatives", "SciPy", *methods], 0
    )
    for problem in problems(given.path, given.problems or [*hock, *FURTHER], given.most):
        try:
            row = run(problem, methods)
        except wg.errors.WengertError as error:
            print(f"{problem.name:12} cannot be traced: {str(error)[:60]}")
            counts["not traced"] += 1
            continue
        known = [*problem.published, row["SciPy"]]
        counts["problems"] += 1
        counts["derivatives"] += row["difference"] <= SAME_DERIVATIVE
        counts["SciPy"] += row["SciPy"] is not None and agrees(row["SciPy"], problem.published)
        shown = [f"{problem.name:12}{problem.size:4} {problem.given.m:4} {row['difference']:8.0e}"]
        for name in ("SciPy", *methods):
            value = row[name]
            shown.append("     no solution" if value is None else f"{value:16.8g}")
            if name in methods and value is not None:
                counts[name] += agrees(value, known)
                shown.append(" " if agrees(value, known) else "*")
        print(*shown, problem.published, flush=True)
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
