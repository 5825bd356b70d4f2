"""Work that is counted, where a clock would make a test depend on how busy the machine is."""

import sys


def calls(function, *args):
    """How many functions are called, of Python's and of C's, while one runs."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function(*args)
    finally:
        sys.setprofile(before)
    return count
