"""The browser of tests that look at pages: an installed Chromium or Chrome, driven by playwright.

    driver       playwright's module; skips where it or the browser is missing
    executable   the browser's path, or None
    launched     starts it
    shortfall    the line that a run prints if such tests were skipped (tests/conftest.py, run.py)

`make browser` installs Chromium where apt is at hand.
"""

import shutil

import pytest

NAMES = "chromium chromium-browser google-chrome google-chrome-stable".split()
NEEDED = "needs a browser"


def executable():
    """The path of an installed browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def driver(allow_module_level=False):
    """`playwright.sync_api`; the test, or the module, is skipped where it cannot be used."""
    if executable() is None:
        reason = f"{NEEDED}: no Chromium found; `make browser` installs it"
        pytest.skip(reason, allow_module_level=allow_module_level)
    return pytest.importorskip("playwright.sync_api", reason=f"{NEEDED}: playwright (extra: dev)")


def launched(playwright):
    """A running browser, of `driver().sync_playwright()`."""
    return playwright.chromium.launch(executable_path=executable(), args=["--no-sandbox"])


def shortfall(skipped):
    """What to print of skipped tests, given as (place, reason); "" if none needed a browser."""
    missed = [(place, reason) for place, reason in skipped if NEEDED in reason]
    if not missed:
        return ""
    places = ", ".join(sorted({place for place, _ in missed}))
    why = missed[0][1].partition(f"{NEEDED}: ")[2]
    return f"BROWSER TESTS SKIPPED, of {places}: {why}"
