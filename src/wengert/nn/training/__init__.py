"""Training: `fit` and its parts.

fit                 fit; start reading here
trainer             the training loop
train_step          one compiled training step
batch_iteration     data as a repeatable iterable of batches
processes           training with several processes; common_start its beginning
evaluation          evaluate: loss and metrics without updates; metrics averaged over samples
training_state      History: the recorded figures; the complete state of a training run, saved and
                    restored
callbacks           Callback, EarlyStopping, OnPlateau; Checkpoint, read_checkpoint
loggers             JSONLines, TensorBoard; TensorBoard's file format
interruptions       finds the operation that produced the first NaN; Ctrl-C
"""

from wengert._engine.core.lazy_import import public_dir

from .callbacks import Checkpoint, EarlyStopping, OnPlateau, read_checkpoint
from .evaluation import accuracy, evaluate
from .fit import fit
from .loggers import JSONLines, TensorBoard
from .trainer import Callback, Run
from .training_state import History

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
