"""Every test of this folder runs with the interpreter and with native code."""

import pytest
from wengert.backends import backends

from wengert._engine.jit import compiled_program


@pytest.fixture(autouse=True, params=[b for b in ("interpret", "llvm") if b in backends()])
def compiler(request, monkeypatch):
    """What compiles where nobody says."""
    monkeypatch.setattr(compiled_program, "PREFERRED", (request.param,))
    return request.param
