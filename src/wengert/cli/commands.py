"""The commands, their options and exit codes.

main      runs a command and returns the exit code
parser    the commands with their options and help texts
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..errors import WengertError

DONE, FAILED, INTERRUPTED = 0, 1, 130  # argparse exits with 2 for invalid arguments


def parser() -> argparse.ArgumentParser:
    """The commands with their options."""
    top = argparse.ArgumentParser(
        prog="wengert",
        description="Exact derivatives of NumPy programs.",
        epilog="wengert COMMAND --help describes each command.",
    )
    top.add_argument("--version", action="version", version=f"wengert {version('wengert')}")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    demo = commands.add_parser(
        "demo",
        help="train a small network and show its graph",
        description="Classify points on two spirals, and write the weights, the graph and pictures "
        "of the graph. Takes a few seconds and needs no other packages.",
    )
    demo.add_argument("--out", type=Path, default=Path("wengert-demo"), help="folder to write to")
    demo.add_argument("--epochs", type=int, default=60)
    demo.add_argument("--seed", type=int, default=0)

    show = commands.add_parser(
        "show",
        help="show the contents of a file",
        description="Show a graph, weights or arrays in a file of wengert, safetensors or NumPy.",
    )
    show.add_argument("file", type=Path, metavar="FILE")
    show.add_argument("--svg", type=Path, help="write a picture of the graph")
    show.add_argument("--html", type=Path, help="write an interactive page with the graph")
    show.add_argument("--dot", type=Path, help="write the graph in the DOT language of Graphviz")

    commands.add_parser(
        "doctor",
        help="show versions and hardware, and check native code",
        description="Print the machine, versions, threads, cache and memory; compile a function "
        "and compare it with NumPy. The exit code is 1 if a check fails.",
    )

    tune = commands.add_parser(
        "tune",
        help="measure thresholds of the compiler on this machine",
        description="Measure the sizes above which threads, matrix blocks etc. are faster on this "
        "machine, and store them in the cache folder for new processes. Takes half a minute; "
        "the machine should be idle.",
    )
    action = tune.add_mutually_exclusive_group()
    action.add_argument("--show", action="store_true", help="print all thresholds")
    action.add_argument("--reset", action="store_true", help="delete the values of this machine")
    _add_export(commands)
    return top


def _add_export(commands: Any) -> None:
    export = commands.add_parser(
        "export",
        help="write a function and its derivatives for other languages",
        description="Write a function of a module, and derivatives of it, as C, an object file, a "
        "shared library, LLVM IR or WebAssembly, with a C header.",
    )
    export.add_argument("function", metavar="MODULE:FUNCTION", help="or model.py:FUNCTION")
    export.add_argument(
        "specs", nargs="*", metavar="SPEC", help="of each argument: float64[n,3], float64[]"
    )
    export.add_argument("--out", type=Path, required=True, help="the file to write")
    export.add_argument("--derivatives", default="value", help="value,gradient,hvp ...")
    export.add_argument("--format", help="c, object, shared, llvm, wasm; by default of the suffix")
    export.add_argument("--target", help="native, x86-64, aarch64, riscv64, wasm32, or a triple")
    export.add_argument("--name", help="the name in C")
    export.add_argument("--argnums", default="0", help="what to differentiate with respect to")
    export.add_argument("--linker", help="the command that links")
    export.add_argument(
        "--blas", choices=("include", "link"), default="include", help="routines of BLAS, LAPACK"
    )
    export.add_argument(
        "--casadi",
        type=int,
        nargs="?",
        const=1,
        default=0,
        choices=(0, 1, 2),
        metavar="ORDER",
        help="functions for casadi.external, with derivatives of order 1 (the default) or 2",
    )
    export.add_argument("--workspace", type=int, default=0, help="bytes for unknown lengths")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default `sys.argv`.

    Returns
    -------
    int
        The exit code: 0, 1 or 130. Invalid arguments end the process with 2.
    """
    options = parser().parse_args(arguments)
    try:
        run = import_module(f".{options.command}", __package__).run
        return FAILED if run(options) is False else DONE
    except KeyboardInterrupt:
        return _ended(options, "interrupted", INTERRUPTED)
    except BrokenPipeError:  # the output was piped to a program that has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (WengertError, OSError, ImportError) as error:
        # Remove the location: it is not in the user's code.
        message = re.sub(r" \(at [^()]*, in [^()]*\)", "", str(error))
        return _ended(options, f"error: {message}", FAILED)


def _ended(options: argparse.Namespace, message: str, status: int) -> int:
    if options.debug:
        traceback.print_exc()
    print(f"wengert {options.command}: {message}", file=sys.stderr)
    return status
