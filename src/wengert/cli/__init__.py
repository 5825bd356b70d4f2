"""The command line: `wengert demo`, `show`, `doctor`, `tune`, `export`.

commands  argument parser, exit codes, error messages
demo      a small training run with plots
show      the contents of a file
doctor    versions, hardware, and whether everything works
export    a function and its derivatives as a file for other languages
tune      thresholds of the compiler, measured on this machine

Exit codes: 0 success, 1 failure, 2 invalid arguments, 130 interrupted.  Errors of the user are
printed as one message without a traceback.
"""

from wengert._engine.core.lazy_import import public_dir

from .commands import main

__all__ = ["main"]
__dir__ = public_dir(__name__)
