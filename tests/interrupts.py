"""KeyboardInterrupt at a chosen moment, in place of a signal at a random time.

Python handles signals where a Python function begins or is resumed, and after each call of a C
function.  A profile function is called at the same moments, and can raise there.

    moments_in   run a function, raise at a moment, and count the moments up to there
"""

import contextlib
import functools
import os
import sys

import numpy as np

import wengert as wg

_LIBRARY = os.path.dirname(wg.__file__)
# Modules whose context managers the library uses, and which are written in Python.
_CONTEXT_MANAGERS = (contextlib.__file__, np.errstate.__enter__.__code__.co_filename)


class Interrupt(KeyboardInterrupt):
    """The exception that is raised."""


@functools.cache
def _is_counted(code, also):
    file = code.co_filename
    return file.startswith(_LIBRARY) or file in _CONTEXT_MANAGERS or file == also


def moments_in(act, interrupt_at=0, also=None):
    """Run `act`, raise at a moment if it has so many, and return the number up to there.

    Parameters
    ----------
    act : callable
    interrupt_at : int
        The moment, counted from 1.
    also : str, optional
        A file that is counted in addition to the library.
    """
    count = 0

    def profile(frame, event, _):
        nonlocal count
        if event in ("call", "c_return") and _is_counted(frame.f_code, also):
            count += 1
            if count == interrupt_at:
                raise Interrupt

    before = sys.getprofile()
    try:
        sys.setprofile(profile)
        act()
    except Interrupt:
        pass
    finally:
        sys.setprofile(before)
    return count
