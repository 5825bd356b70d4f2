"""The ``try`` statements of the user's: they catch the exceptions of Python, and no refusals.

    except refused():    # before the user's handlers
        raise

refused    the exceptions that this handler catches: all if the one that is raised is a refusal
"""

from __future__ import annotations

import sys

from wengert._engine.core.replaced_errors import hidden
from wengert._engine.core.symbolic.constraints import LengthsDiffer
from wengert.errors import ConversionError, TraceError

from ..state import NotTraceable

_REFUSALS = (TraceError, ConversionError, NotTraceable)


def refused() -> tuple[type[BaseException], ...]:
    """`BaseException` if the exception that is being handled is a refusal; otherwise nothing."""
    error = sys.exc_info()[1]
    is_refusal = isinstance(error, _REFUSALS) or isinstance(
        getattr(error, "__cause__", None), LengthsDiffer
    )
    if is_refusal or (isinstance(error, Exception) and hidden(error) is not None):
        return (BaseException,)
    return ()
