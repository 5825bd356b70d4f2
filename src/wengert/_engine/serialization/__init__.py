"""Keep: graphs and parameters as files, in one safe format.

saving.py      save, load, inspect: begin here
series.py      snapshot, snapshots, latest: a folder of dated files
classes.py     register_class: named tuples, dataclasses and tensor classes by name
writing.py     values as JSON beside arrays; reading.py the way back
lists.py       graphs, line by line; rebuilding.py the way back, checks.py the specs
container.py   the bytes: the layout of safetensors; files.py puts them in place whole
damage.py, lengths.py   what is wrong with a file; sizes with names, within limits
"""

from typing import TYPE_CHECKING

from wengert._engine.core.late import late_names, public_dir

from .classes import register_class, register_graph

if TYPE_CHECKING:
    from .saving import Contents, inspect, load, save
    from .series import DamagedWarning, latest, snapshot, snapshots

__all__ = [
    "Contents",
    "DamagedWarning",
    "inspect",
    "latest",
    "load",
    "register_class",
    "register_graph",
    "save",
    "snapshot",
    "snapshots",
]

__getattr__ = late_names(
    __name__,
    {
        **dict.fromkeys(("Contents", "inspect", "load", "save"), ".saving"),
        **dict.fromkeys(("DamagedWarning", "latest", "snapshot", "snapshots"), ".series"),
    },
)

__dir__ = public_dir(__name__)
