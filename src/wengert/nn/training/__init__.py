"""Training: `fit`, and the parts that it is made of.

fit.py           fit: begin here
run.py           Run: the loop
steps.py         one step, compiled; batches.py what it is given; metrics.py what is measured
evaluation.py    evaluate: loss and metrics without learning
history.py       History: what has been measured
callbacks.py     Callback, EarlyStopping, OnPlateau
checkpoints.py   Checkpoint, read_checkpoint; capturing.py all that decides how a training goes on
culprits.py      where the first NaN comes from
interrupting.py  Ctrl-C
logs.py          JSONLines, TensorBoard; events.py the bytes of the latter
"""

from wengert._engine.core.lazy_import import public_dir

from .callbacks import Callback, EarlyStopping, OnPlateau
from .checkpoints import Checkpoint, read_checkpoint
from .evaluation import evaluate
from .fit import fit
from .history import History
from .logs import JSONLines, TensorBoard
from .metrics import accuracy
from .run import Run

__all__ = [
    "Callback",
    "Checkpoint",
    "EarlyStopping",
    "History",
    "JSONLines",
    "OnPlateau",
    "Run",
    "TensorBoard",
    "accuracy",
    "evaluate",
    "fit",
    "read_checkpoint",
]

__dir__ = public_dir(__name__)
