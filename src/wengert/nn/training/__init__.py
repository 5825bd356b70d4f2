"""Training: `fit`, and the parts that it is made of.

batch_iteration     what `fit` is given as data, as something to go through again and again
callbacks           Callback, EarlyStopping, OnPlateau
checkpoints         Checkpoint, read_checkpoint; capturing.py all that decides how a training goes
                    on
evaluation          evaluate: loss and metrics without learning
fit                 fit: begin here
history             History: what has been measured
keyboard_interrupt  Ctrl-C
loggers             JSONLines, TensorBoard; events.py the bytes of the latter
metrics             figures of predictions, averaged over samples
nan_report          where the first NaN comes from
tensorboard         the files that TensorBoard reads, written without TensorFlow
train_step          one step, compiled; batches.py what it is given; metrics.py what is measured
trainer             Run: the loop
training_state      everything that decides how a training goes on, as plain values, and back
"""

from wengert._engine.core.lazy_import import public_dir

from .callbacks import Callback, EarlyStopping, OnPlateau
from .checkpoints import Checkpoint, read_checkpoint
from .evaluation import evaluate
from .fit import fit
from .history import History
from .loggers import JSONLines, TensorBoard
from .metrics import accuracy
from .trainer import Run

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
