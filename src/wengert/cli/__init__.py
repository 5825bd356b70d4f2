"""The command line: `wengert demo`, `train`, `show`, `bench`, `doctor`.

bench        how fast this machine is
commands     what there is to say, and what is done then; how errors end
demo         a small training with its pictures
doctor       what this machine is, and whether all works
from_config  models, losses, optimisers and data by their names
show         what is in a file
toml_config  that file: TOML, read and checked
train        a training that a file describes

A command ends with 0 if it did what it was asked, 1 if that failed, 2 if it was not understood,
130 if it was interrupted.  Errors of the user's are one message, not a traceback.
"""

from wengert._engine.core.lazy_import import public_dir

from .commands import main

__all__ = ["main"]
__dir__ = public_dir(__name__)
