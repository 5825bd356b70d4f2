"""Training: `fit` and its parts.

fit                 fit; start reading here
trainer             the training loop
train_step          one compiled training step
processes           training with several processes
common_start        its beginning
batch_iteration     data as a repeatable iterable of batches
evaluation          evaluate: loss and metrics without updates; metrics averaged over samples
history             History: the recorded figures
callbacks           Callback, EarlyStopping, OnPlateau
checkpoints         Checkpoint, read_checkpoint
training_state      the complete state of a training run, saved and restored
loggers             JSONLines, TensorBoard; TensorBoard's file format
nan_report          finds the operation that produced the first NaN
keyboard_interrupt  Ctrl-C
"""

from wengert._engine.core.lazy_import import public_dir

from .callbacks import EarlyStopping, OnPlateau
from .checkpoints import Checkpoint, read_checkpoint
from .evaluation import accuracy, evaluate
from .fit import fit
from .history import History
from .loggers import JSONLines, TensorBoard
from .trainer import Callback, Run

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
