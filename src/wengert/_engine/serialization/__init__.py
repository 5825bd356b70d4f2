"""Serialization: graphs, arrays and containers in safetensors files.

save_load.py         save, load, inspect; begin here; snapshot, snapshots, latest: a folder of dated
                     files
class_registry.py    register_class: named tuples, dataclasses and tensor classes by name
encode.py            values as JSON and arrays; decode.py the inverse
graph_json.py        graphs as JSON; graph_from_json.py the inverse
specs_json.py        symbolic sizes as text, with limits; verification of the specs in a file
safetensors_file.py  the safetensors format
atomic_files.py      atomic writes
errors.py            errors of damaged files
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names, public_dir

from .class_registry import register_class, register_graph

if TYPE_CHECKING:
    from .save_load import (
        Contents,
        DamagedWarning,
        inspect,
        latest,
        load,
        save,
        snapshot,
        snapshots,
    )

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

__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("Contents", "inspect", "load", "save"), ".save_load"),
        **dict.fromkeys(("DamagedWarning", "latest", "snapshot", "snapshots"), ".save_load"),
    },
)

__dir__ = public_dir(__name__)
