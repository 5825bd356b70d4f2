"""The tests of this folder on a graphics card: `WENGERT_TEST_CARD=1 pytest tests/backends/cuda`.

Then `emulated_device` of wengert.backends is a block with the card of CuPy, whatever number of
threads is asked for; tests of the emulation itself fail. test_card.py needs no variable.
"""

import os
from contextlib import contextmanager

import pytest
import wengert.backends

from wengert._engine.backends.cuda import library_calls
from wengert._engine.backends.cuda.current_device import current, using


@contextmanager
def card(threads=7, seed=0):
    """The card in use."""
    with using(current()) as device:
        yield device


@pytest.fixture
def no_host_callbacks(monkeypatch):
    """An error instead of a host callback."""

    def refuse(program, node, *rest):
        raise AssertionError(f"{node.op.name} was computed on the host")

    monkeypatch.setattr(library_calls, "_on_host", refuse)


if os.environ.get("WENGERT_TEST_CARD"):
    wengert.backends.emulated_device = card
