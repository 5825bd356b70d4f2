"""The commands, their options and exit codes.

main      the entry: arguments to an exit status
parser    the commands with their options and helps
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

from ..errors import WengertError

DONE, FAILED, INTERRUPTED = 0, 1, 130  # 2, not understood, is argparse's


def parser() -> argparse.ArgumentParser:
    """The commands with their options."""
    top = argparse.ArgumentParser(
        prog="wengert",
        description="Exact derivatives of NumPy programs, and models that learn.",
        epilog="wengert COMMAND --help says more of each command.",
    )
    top.add_argument("--version", action="version", version=f"wengert {version('wengert')}")
    top.add_argument("--debug", action="store_true", help="show where in the code an error arose")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    demo = commands.add_parser(
        "demo",
        help="train a small network and look at it",
        description="Tell two spirals apart. Writes the trained weights, the graph and its "
        "picture. Takes a few seconds and needs nothing beside wengert.",
    )
    demo.add_argument("--out", type=Path, default=Path("wengert-demo"), help="folder to write to")
    demo.add_argument("--epochs", type=int, default=60)
    demo.add_argument("--seed", type=int, default=0)

    train = commands.add_parser(
        "train",
        help="train a model that a file describes",
        description="Train what CONFIG (TOML) describes: [data], [model], [loss], [optimizer], "
        "[fit]. Ctrl-C saves; --resume goes on. docs/command-line.md has the whole format.",
    )
    train.add_argument("config", type=Path, metavar="CONFIG")
    train.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="changes",
        help="change an entry of the file: --set fit.epochs=3 (may be repeated)",
    )  # fmt: skip
    train.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    train.add_argument("--quiet", action="store_true", help="no progress")

    show = commands.add_parser(
        "show",
        help="show what is in a file",
        description="Show a graph, weights or arrays that wengert, safetensors or NumPy wrote.",
    )
    show.add_argument("file", type=Path, metavar="FILE")
    show.add_argument("--svg", type=Path, help="write a picture of the graph")
    show.add_argument("--html", type=Path, help="write a page to explore the graph with a browser")
    show.add_argument("--dot", type=Path, help="write the graph for graphviz")

    bench = commands.add_parser(
        "bench",
        help="measure how fast this machine is",
        description="Time a few derivatives beside NumPy by hand, interleaved, medians. The "
        "benchmarks beside other libraries are in the repository (make bench).",
    )
    bench.add_argument("--quick", action="store_true", help="small sizes, a few seconds")

    commands.add_parser(
        "doctor",
        help="say what this machine has, and whether wengert works on it",
        description="Print machine, versions, threads, cache and memory; compile a function and "
        "compare it with plain NumPy. Ends with 1 if something is wrong.",
    )
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        The exit status: 0, 1 or 130. (Arguments that make no sense end the process with 2.)
    """
    options = parser().parse_args(arguments)
    try:
        run = import_module(f".{options.command}", __package__).run
        return FAILED if run(options) is False else DONE
    except KeyboardInterrupt:
        return _ended(options, "interrupted", INTERRUPTED)
    except BrokenPipeError:  # whoever read what is printed has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (WengertError, OSError, ImportError) as error:
        message = re.sub(
            r" \(at [^()]*, in [^()]*\)", "", str(error)
        )  # a line of no user's program
        return _ended(options, f"error: {message}", FAILED)


def _ended(options: argparse.Namespace, message: str, status: int) -> int:
    if options.debug:
        traceback.print_exc()
    print(f"wengert {options.command}: {message}", file=sys.stderr)
    return status
