"""A progress bar with figures such as the loss, and the remaining time.

    Progress    the bar: rich's on a terminal, plain lines elsewhere, or one that is given
    track       iterate over items, showing progress

The bar itself is in wengert._engine.visualization.progress, which solvers use, too.
"""

from wengert._engine.core.lazy_import import public_dir
from wengert._engine.visualization.progress import Progress, track

__all__ = ["Progress", "track"]

__dir__ = public_dir(__name__)
