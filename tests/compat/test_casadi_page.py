"""The page for users of CasADi: its blocks for CasADi give the results of those for this library.

Its blocks fenced as text, but for the command of a shell, are CasADi's; those of Python also run in
the test of all pages. Skipped where CasADi is not installed.
"""

import contextlib
import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "casadi-users.md"
EXACT = "value jacobian hessian forward reverse last path rows branch root slope"
APPROXIMATE = {"end": 1e-8, "sensitivity": 1e-7, "minimum": 1e-5, "cost": 1e-6}


def test_both_sides_of_the_page_agree(tmp_path, monkeypatch):
    pytest.importorskip("casadi", reason="casadi is not installed")
    monkeypatch.chdir(tmp_path)
    spaces = {"text": {}, "python": {}}
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        if not block.startswith("gcc"):
            with contextlib.redirect_stdout(None):
                exec(block, spaces[language])
    tolerances = dict.fromkeys(EXACT.split(), 1e-9) | APPROXIMATE
    for name, tolerance in tolerances.items():
        here, theirs = (np.asarray(spaces[k][name], float) for k in ("python", "text"))
        np.testing.assert_allclose(
            np.squeeze(here), np.squeeze(theirs), tolerance, tolerance, err_msg=name
        )
