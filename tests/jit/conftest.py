"""Every test of this folder runs with the interpreter and with native code."""

import pytest
from wengert.backends import backends

from wengert._engine.jit import settings


@pytest.fixture(autouse=True, params=[b for b in ("interpret", "llvm") if b in backends()])
def compiler(request, monkeypatch):
    """What compiles where nobody says."""
    monkeypatch.setattr(settings, "PREFERRED", (request.param,))
    return request.param
