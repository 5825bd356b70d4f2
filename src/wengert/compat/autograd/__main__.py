"""`python -m wengert.compat.autograd`: run a program written for autograd, unchanged.

    python -m wengert.compat.autograd [--strict] script.py [arguments]
    python -m wengert.compat.autograd [--strict] -m module [arguments]  for example -m pytest tests

As `python script.py` and `python -m module`, with the import hook of import_hook.py installed.
With --strict what autograd refuses is refused (strict.py).
"""

import runpy
import sys
from pathlib import Path

from .import_hook import install

USAGE = "usage: python -m wengert.compat.autograd [--strict] (script.py | -m module) [arguments]"


def main(argv: list[str]) -> None:
    """Run the script or module that the arguments name."""
    strict = argv[:1] == ["--strict"]
    argv = argv[strict:]
    if not argv or argv[0] in ("-h", "--help") or argv == ["-m"]:
        print(USAGE, file=sys.stdout if argv[:1] in (["-h"], ["--help"]) else sys.stderr)
        sys.exit(0 if argv[:1] in (["-h"], ["--help"]) else 2)
    install(strict)
    if argv[0] == "-m":
        sys.argv = argv[1:]
        sys.path[0] = str(Path.cwd())
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path[0] = str(Path(argv[0]).resolve().parent)
        runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
