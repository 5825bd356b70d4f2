"""GradBench's own evals, from a checkout of it, against a tool: passes messages and counts answers.

    GRADBENCH=path make gradbench
    python -m gradbench.checkout path                  all twelve evals (PYTHONPATH=benchmarks)
    python -m gradbench.checkout path --only gmm       some only (may be repeated)
    python -m gradbench.checkout path --seconds 1      for as long as GradBench does by default
    python -m gradbench.checkout path --manual         GradBench's derivatives by hand beside ours
    python -m gradbench.checkout path --save           for the page, in results/gradbench.json
    python -m gradbench.checkout path -- --max 3       arguments for the eval itself

GradBench puts a program of its own, which needs Rust, between an eval and a tool; this file is what
we need of it.  Both are processes: each line of the eval is written to the tool, and each line of
the tool to the eval.  Whether an answer is right is said by the eval, which compares it with that
of GradBench's C++ (tools/manual in the checkout, compiled here first; that needs make, a C++
compiler and the header json.hpp, which ``make -C cpp`` downloads there).  An eval has passed if it
ended well and called every answer valid.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from _harness import load, save

HERE = Path(__file__).resolve().parent
EVALS = (
    "hello", "llsq", "lse", "det", "kmeans", "gmm", "ode", "ba", "ht", "lstm", "particle", "saddle",
)  # fmt: skip
PRIMALS = ("square", "primal", "cost", "objective")  # what is no derivative
BY_ITSELF = ("hello", "particle", "saddle")  # their right answers are in the evals


@dataclass
class Session:
    """What one eval said of one tool.

    ``times`` are median seconds by function and description; ``errors`` say why an answer was
    refused, why a tool failed, or how a process ended.
    """

    valid: int = 0
    errors: list[str] = field(default_factory=list)
    times: dict[tuple[str, str], float] = field(default_factory=dict)

    def heard(self, message: dict[str, Any], response: dict[str, Any]) -> None:
        """Note one round."""
        name = f"{message.get('function')} {message.get('description') or ''}".strip()
        if message["kind"] == "evaluate":
            spent = [t["nanoseconds"] for t in response.get("timings") or [] if _evaluated(t)]
            if spent:
                self.times[message["function"], message.get("description", "")] = (
                    median(spent) / 1e9
                )
        if message["kind"] in ("define", "evaluate") and not response["success"]:
            self.errors.append(f"{name}: {(response.get('error') or 'failed').strip()}")
        if message["kind"] == "analysis":
            self.valid += message["valid"]
            self.errors += [] if message["valid"] else [message.get("error") or "invalid"]


def _evaluated(timing: dict[str, Any]) -> bool:
    found: bool = timing["name"] == "evaluate"
    return found


def converse(eval_command: Sequence[str], tool_command: Sequence[str], checkout: Path) -> Session:
    """Run an eval against a tool."""
    session = Session()
    theirs = os.environ | {"PYTHONPATH": str(checkout / "python" / "gradbench")}
    with tempfile.TemporaryFile("w+") as complaints:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        asking = subprocess.Popen(
            eval_command, cwd=checkout, env=theirs, stderr=complaints, **pipes
        )
        ours = theirs if tool_command[-1] == "manual" else None
        answering = subprocess.Popen(tool_command, cwd=checkout, env=ours, **pipes)
        try:
            for line in asking.stdout:
                answering.stdin.write(line)
                answering.stdin.flush()
                response = answering.stdout.readline()
                if not response:
                    session.errors.append("the tool ended")
                    break
                session.heard(json.loads(line), json.loads(response))
                asking.stdin.write(response)
                asking.stdin.flush()
        except BrokenPipeError:
            session.errors.append("a process ended early")
        finally:
            for process in (asking, answering):
                process.stdin.close()
        if asking.wait():
            complaints.seek(0)
            last = complaints.read().strip().splitlines()[-1:]
            session.errors.append(f"the eval ended with status {asking.returncode}: {last}")
        answering.wait()
    return session


def compiled(checkout: Path, name: str) -> str | None:
    """Compile GradBench's C++ for an eval; returns what went wrong."""
    commands = [["make", "-C", "tools/manual", f"bin/{name}"]]
    if not (checkout / "cpp" / "json.hpp").exists():
        commands.insert(0, ["make", "-C", "cpp"])
    for command in commands:
        try:
            done = subprocess.run(
                command, cwd=checkout, capture_output=True, text=True, check=False
            )
        except FileNotFoundError as error:
            return f"{error.filename} is not here"
        if done.returncode:
            return f"{' '.join(command)}: {done.stderr.strip()[-300:]}"
    return None


def arguments(name: str, seconds: float, more: Sequence[str]) -> list[str]:
    """Of the eval's program."""
    return [] if name == "hello" else ["--min-seconds", str(seconds), *more]


def beside(ours: Session, theirs: Session) -> list[float]:
    """Our time over theirs, of every derivative that both computed."""
    both = ours.times.keys() & theirs.times.keys()
    return [ours.times[at] / theirs.times[at] for at in both if at[0] not in PRIMALS]


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, values)) / len(values))


def kept(name: str, more: Sequence[str], session: Session, found: Sequence[float]) -> None:
    """Write down what was said, for the page."""
    results = load("gradbench")
    ratios = {"mean": mean(found), "worst": max(found)} if found else {}
    outcome = {"valid": session.valid, "errors": len(session.errors), "arguments": " ".join(more)}
    results.setdefault("own", {})[name] = outcome | ratios
    save("gradbench", results)


def judged(name: str, options: argparse.Namespace) -> tuple[bool, list[float]]:
    """Run one eval, print how it went; whether it passed, and ratios to GradBench's C++."""
    checkout = options.checkout
    trouble = None if name in BY_ITSELF else compiled(checkout, name)
    if trouble:
        print(f"{name}: cannot be judged: GradBench's own C++ does not compile: {trouble}")
        return False, []
    script = checkout / "python" / "gradbench" / "gradbench" / "evals" / name / "run.py"
    asking = [sys.executable, str(script), *arguments(name, options.seconds, options.more)]
    session = converse(asking, [sys.executable, "-m", "gradbench.tool"], checkout)
    passed = session.valid > 0 and not session.errors
    found: list[float] = []
    if options.manual and name not in BY_ITSELF:
        theirs = [sys.executable, str(checkout / "python/gradbench/gradbench/cpp.py"), "manual"]
        found = beside(session, converse(asking, theirs, checkout))
    line = f"{name}: {'pass' if passed else 'FAIL'}, {session.valid} answers valid"
    if found:
        line += f", {mean(found):.2f} of the time of C++ by hand (worst {max(found):.2f})"
    print(line, flush=True)
    for error in session.errors[:3]:
        print("    " + error[:1500].replace("\n", "\n    "))
    if options.save:
        kept(name, options.more, session, found)
    return passed, found


def main() -> int:
    """Run the evals; returns 1 if one has not passed."""
    parser = argparse.ArgumentParser(description="GradBench's own evals against wengert")
    parser.add_argument("checkout", type=Path, help="a checkout of gradbench/gradbench")
    parser.add_argument("--only", action="append", choices=EVALS, help="some evals only")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each input (default 0.1)")
    parser.add_argument("--manual", action="store_true", help="time GradBench's C++ too")
    parser.add_argument("--save", action="store_true", help="keep what is said for the page")
    given = sys.argv[1:]
    end = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:end])
    options.more = given[end + 1 :]  # for the eval
    options.checkout = options.checkout.resolve()
    if not (options.checkout / "python" / "gradbench").is_dir():
        parser.error(f"{options.checkout} is not a checkout of GradBench")
    paths = [str(HERE.parent), str(HERE.parents[1] / "src")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # of the tool
    names = options.only or EVALS
    outcomes = [judged(name, options) for name in names]
    ratios = [mean(found) for _, found in outcomes if found]
    right = sum(passed for passed, _ in outcomes)
    print(f"{right} of {len(names)} evals passed")
    if ratios:
        print(f"geometric mean over GradBench's C++ by hand: {mean(ratios):.2f}")
    return right < len(names)


if __name__ == "__main__":
    sys.exit(main())
