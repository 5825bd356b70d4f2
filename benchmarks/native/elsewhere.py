"""A library whose pins are not ours, in an environment and a process of its own.

    python      the interpreter that has a contestant's library: PyTensor's is .venv-pytensor
    Workers     in the process of a workload: one process for all cases, started when first needed
    version     what is installed there
    serve       in that process: makes the contestant of a case, computes, and takes samples

The process runs the same module of the same suite with the same variables, so that it makes the
same inputs; it receives the name of a case, and answers with the numbers that it computed, which
are compared as everyone's are.  A sample is asked for when the contestant's turn comes, is timed
there with the same loop (`measure.sampling`), and comes back as three numbers: no call of a
function crosses the pipe, and while one process measures the other waits.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent.parent
ENVIRONMENTS = {"PyTensor": ("pytensor", BENCHMARKS.parent / ".venv-pytensor" / "bin" / "python")}


def python(contestant: str) -> str:
    """The interpreter that has the library of a contestant, if there is one for it."""
    library = ENVIRONMENTS.get(contestant.partition(",")[0])
    return str(library[1]) if library and library[1].exists() else sys.executable


@cache
def version(package: str) -> str | None:
    """The version of a package that has an environment of its own; None if there is none."""
    for library, interpreter in ENVIRONMENTS.values():
        if library == package and interpreter.exists():
            code = f"import importlib.metadata as m; print(m.version({package!r}))"
            command = [str(interpreter), "-c", code]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return done.stdout.strip() or None
    return None


class Failed(Exception):
    """What went wrong in the other process."""


class Workers:
    """The processes of one workload, by interpreter."""

    def __init__(self, package: str, module: str, quick: bool) -> None:
        self.started = (package, module, str(int(quick)))
        self.processes: dict[Path, subprocess.Popen[bytes]] = {}

    def placed(self, case: Any) -> Any:
        """The case, whose contestants are made where their library is."""
        makes = {
            name: partial(self.made, case.name, name) if name in ENVIRONMENTS else make
            for name, make in case.contestants.items()
        }
        return replace(case, contestants=makes)

    def made(self, case: str, contestant: str) -> Any:
        """Have a call made and run once; a Call that stands for it here."""
        from .case import Call, Cannot

        library, interpreter = ENVIRONMENTS[contestant]
        if not interpreter.exists():
            raise ModuleNotFoundError(f"no {interpreter}", name=library)
        kind, found = self.asked(interpreter, "make", case, contestant)
        if kind == "cannot":
            raise Cannot(found)
        if kind == "failed":
            raise Failed(found)

        def sample(number: int) -> tuple[float, float, float]:
            times: tuple[float, float, float] = self.asked(
                interpreter, "sample", contestant, number
            )
            return times

        return Call(lambda: found, (), sample=sample)

    def asked(self, interpreter: Path, *message: Any) -> Any:
        """The answer to a message."""
        process = self.processes.get(interpreter)
        if process is None:
            command = [str(interpreter), str(Path(__file__).resolve()), *self.started]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.processes[interpreter] = process
        assert process.stdin and process.stdout
        try:
            pickle.dump(message, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)
        except (EOFError, BrokenPipeError):
            status = ended(self.processes.pop(interpreter))
            raise Failed(f"the process ended with status {status}") from None

    def close(self) -> None:
        """Let the processes end."""
        while self.processes:
            ended(self.processes.popitem()[1])


def ended(process: subprocess.Popen[bytes]) -> int:
    """Close both pipes, so that a process ends; its status."""
    assert process.stdin and process.stdout
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.stdout.close()
    return process.wait()


def serve(package: str, module: str, quick: bool) -> None:
    """Answer messages until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    from native import measure
    from native.case import Cannot

    cases = importlib.import_module(f"{package}.{module}").cases(quick)
    case: Any = None
    samples: dict[str, Callable[[int], tuple[float, float, float]]] = {}

    def answer(kind: str, *given: Any) -> Any:
        nonlocal case
        if kind == "sample":
            contestant, number = given
            return samples[contestant](number)
        name, contestant = given
        while case is None or case.name != name:
            case = next(cases)
            samples.clear()
        try:
            call = case.contestants[contestant]()
            found = measure.arrays(call.numbers(measure.once(call)))
        except Cannot as reason:
            return "cannot", str(reason)
        except Exception as error:  # of whatever kind: it is shown
            return "failed", f"{type(error).__name__}: {error}"
        samples[contestant] = measure.sampling(call)
        return "made", found

    while True:
        try:
            message = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(answer(*message), answers)
        answers.flush()


def versions(described: Mapping[str, Any]) -> dict[str, Any]:
    """A machine's description with the packages that have environments of their own."""
    packages = {name: version(name) or found for name, found in described["packages"].items()}
    return {**described, "packages": packages}


if __name__ == "__main__":
    sys.path[0] = str(BENCHMARKS)
    from native.elsewhere import serve as _serve

    _serve(sys.argv[1], sys.argv[2], sys.argv[3] == "1")
