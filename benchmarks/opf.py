"""AC optimal power flow: costs beside the published ones, and times beside CasADi's.

    python benchmarks/opf.py PATH [CASE ...]    PATH is a checkout of power-grid-lib/pglib-opf
    --casadi        CasADi's Ipopt too, if casadi is installed
    --linear NAME   linear solver of Ipopt

Times are seconds of the processor on one thread, in one process: *build* is everything before the
solver starts (tracing, patterns, compilation), *functions* are all evaluations of objective,
constraints and derivatives, *solve* is the whole solve with them.  Both libraries call Ipopt with
MUMPS, in other versions, so only build and functions are compared.  Small cases are solved three
times, and the least times count; *build* is of the first.  Nothing is written.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import Any

import wengert as wg
from opf_cases import casadi_model, model, network
from wengert._engine.backends.llvm.abi import ipopt_callbacks

CASES = (
    "case3_lmbd case5_pjm case14_ieee case30_ieee case57_ieee case118_ieee case300_ieee "
    "case1354_pegase"
).split()
REPEATS, LONG_SECONDS = 3, 3.0  # solves of a case, unless one takes longer; the least time counts


def published(path: Path) -> dict[str, str]:
    """The published cost of each case, with five digits."""
    rows = re.findall(r"^\|\s*pglib_opf_(\S+)\s*\|(.*)$", (path / "BASELINE.md").read_text(), re.M)
    return {name: cells.split("|")[3].strip() for name, cells in rows}


def solve(net: network.Network, options: dict[str, Any]) -> dict[str, Any]:
    """The cost, iterations and seconds of wengert."""
    given = model.program(net)
    start, rows = given.pop("x0"), []
    for _ in range(REPEATS):
        begin = time.process_time()
        found = wg.optim.nlp(
            lambda x: model.objective(x, net),
            start,
            lambda x: model.constraints(x, net),
            options=options,
            **given,
        )
        solved = found.seconds["processor"]
        build = time.process_time() - begin - solved
        rows.append({"build": build, "functions": found.seconds["functions"], "solve": solved})
        if solved > LONG_SECONDS:
            break
    least = {name: min([row[name] for row in rows]) for name in ("functions", "solve")}
    return {"cost": float(found.fun), "iterations": found.nit, **rows[0], **least}


def main() -> int:
    """Solve the cases, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--casadi", action="store_true")
    parser.add_argument("--linear", default="mumps")
    given = parser.parse_args()
    wg.set_threads(1)
    ipopt_callbacks.clock_number = 3  # the time of the processor
    known, failures = published(given.path), 0
    options = {"linear_solver": given.linear}
    solvers = {"wengert": solve} | ({"CasADi": casadi_model.solve} if given.casadi else {})
    print(f"{'case':24}{'':8} {'cost':>10} {'published':>10}  it  build  functions  solve  share")
    for case in given.cases:
        net = network.read(given.path / f"pglib_opf_{case}.m")
        for name, run in solvers.items():
            found = run(net, options)
            cost = f"{found['cost']:.4e}"
            failures += cost != known[case]
            share = 100.0 * found["functions"] / found["solve"]
            times = f"{found['build']:6.2f} {found['functions']:9.4f} {found['solve']:7.2f}"
            line = f"{case:24}{name:8} {cost} {known[case]} {found['iterations']:4} {times}"
            print(f"{line} {share:5.1f}%", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
