"""The parameters of a user's function, whose annotations are not evaluated.

Since Python 3.14 annotations are evaluated when they are read (PEP 649), which `inspect.signature`
does: a name that only type checkers see, ``if TYPE_CHECKING: from a import B``, is an error there.

    signature_of       the signature, with annotations as text where they are not evaluated
    known_signature    the same, or None for functions written in C that have no signature
    copy_annotations   give a copy of a function the annotations, evaluated or not
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

if sys.version_info >= (3, 14):
    import annotationlib

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """The signature of a callable, with annotations as text."""
        return inspect.signature(function, annotation_format=annotationlib.Format.STRING)

else:

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """The signature of a callable."""
        return inspect.signature(function)


def known_signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a callable; None if it has none, as some functions written in C."""
    try:
        return signature_of(function)
    except (TypeError, ValueError):
        return None


def copy_annotations(copy: FunctionType, function: FunctionType) -> None:
    """Give a copy of a function its annotations, which are not evaluated for this."""
    annotate = getattr(function, "__annotate__", None)
    if annotate is None:
        copy.__annotations__ = function.__annotations__
    else:
        copy.__annotate__ = annotate  # type: ignore[attr-defined]
