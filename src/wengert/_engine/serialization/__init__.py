"""Keep: graphs and parameters as files, in one safe format.

save_load.py      save, load, inspect: begin here
snapshot_files.py      snapshot, snapshots, latest: a folder of dated files
class_registry.py     register_class: named tuples, dataclasses and tensor classes by name
encode.py     values as JSON beside arrays; decode.py the way back
graph_json.py       graphs, line by line; graph_from_json.py the way back, verify_specs.py the specs
safetensors_file.py   the bytes: the layout of safetensors; atomic_files.py puts them in place whole
errors.py, dim_json.py   what is wrong with a file; sizes with names, within limits
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import late_names, public_dir

from .class_registry import register_class, register_graph

if TYPE_CHECKING:
    from .save_load import Contents, inspect, load, save
    from .snapshot_files import DamagedWarning, latest, snapshot, snapshots

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
        **dict.fromkeys(("Contents", "inspect", "load", "save"), ".save_load"),
        **dict.fromkeys(("DamagedWarning", "latest", "snapshot", "snapshots"), ".snapshot_files"),
    },
)

__dir__ = public_dir(__name__)
