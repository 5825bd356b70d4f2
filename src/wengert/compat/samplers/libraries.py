"""nutpie, walnutpie and ArviZ, imported at first use.

    library    one of them, or an error that says how to install it

Only this package imports them, so that it can be imported and documented without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from wengert.errors import at, user_line


def library(name: str) -> Any:
    """The module of this name.

    Raises
    ------
    ImportError
        It is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(
            f"{package} is not installed. It is in the extra `samplers`: "
            f"pip install wengert[samplers]{at(user_line())}."
        ) from error
