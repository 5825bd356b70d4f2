"""The command line: `wengert demo`, `train`, `show`, `bench`, `doctor`.

commands     argument parser, exit codes, error messages
demo         a small training run with plots
train        training runs described by a file
toml_config  that file: TOML, read and validated
from_config  models, losses, optimizers and data by name
show         the contents of a file
bench        a few timings of this machine
doctor       versions, hardware, and whether everything works

Exit codes: 0 success, 1 failure, 2 invalid arguments, 130 interrupted.  Errors of the user are
printed as one message without a traceback.
"""

from wengert._engine.core.lazy_import import public_dir

from .commands import main

__all__ = ["main"]
__dir__ = public_dir(__name__)
