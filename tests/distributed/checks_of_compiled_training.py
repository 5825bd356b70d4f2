"""The checks of checks_of_training.py that have an argument `compile`, with compiled steps."""

from __future__ import annotations

import functools
import inspect

from tests.distributed import checks_of_training

for _name, _check in list(vars(checks_of_training).items()):
    if _name.startswith("check_") and "compile" in inspect.signature(_check).parameters:
        globals()[_name] = functools.partial(_check, compile=True)
