"""Write docs/coverage.md by calling every supported function of NumPy and SciPy.

The results are stored in docs/coverage.json, from which the page is written and which the tests
read.  A full run takes about six minutes.  If ARRAY_API_TESTS is the path of a checkout of the
array API standard's test suite, its results are updated too; otherwise they are unchanged.

    python docs/generate/coverage.py            everything
    python docs/generate/coverage.py numpy.fft  only these namespaces
    python docs/generate/coverage.py --new      only new functions, and those with missing features
    python docs/generate/coverage.py --page     only the page, from the stored results
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy

DOCS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DOCS.parent))

from tools.coverage import SPACES, collected, names_of, page  # noqa: E402

STORED = DOCS / "coverage.json"
FEATURES = "reverse", "forward", "order 2", "vmap", "traced"


def figures(module):
    """Numbers of passed, failed and skipped tests of the array API suite for a namespace."""
    command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "--disable-deadline"]
    command += ["--derandomize", "-p", "no:cacheprovider", "--tb=no", "-W", "ignore"]
    source = str(DOCS.parent / "src")
    environment = {**os.environ, "ARRAY_API_TESTS_MODULE": module, "PYTHONPATH": source}
    folder = Path(os.environ["ARRAY_API_TESTS"]).expanduser()
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    last = result.stdout.strip().splitlines()[-1]
    count = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped)", last)}
    return {what: count.get(what, 0) for what in ("passed", "failed", "skipped")}


def measured(space, previous):
    """Results for a namespace; previous results of functions with all features are reused."""
    both, missing = names_of(space)
    complete = [n for n in both if all(previous.get(n, {}).get(key) is True for key in FEATURES)]
    reused = {n: previous[n] for n in complete}
    found = {**reused, **collected(space, [n for n in both if n not in reused])}
    return {"functions": {name: found[name] for name in both}, "missing": missing}


def main(arguments):
    """Collect the requested results, and write the JSON file and the page."""
    stored = json.loads(STORED.read_text()) if STORED.exists() else {"spaces": {}, "suite": {}}
    if "--page" not in arguments:
        short = [".".join(m.__version__.split(".")[:2]) for m in (np, scipy)]
        stored["versions"] = dict(zip(("numpy", "scipy"), short, strict=True))
        only_new = "--new" in arguments
        for space in SPACES if only_new else arguments or SPACES:
            previous = stored["spaces"].get(space, {}).get("functions", {}) if only_new else {}
            stored["spaces"][space] = measured(space, previous)
        stored["spaces"] = {space: stored["spaces"][space] for space in SPACES}
    if os.environ.get("ARRAY_API_TESTS") and "--page" not in arguments:
        ours, numpy = figures("wengert.testing.array_api"), figures("numpy")
        version = np.__array_api_version__
        stored["suite"] = {"version": version, "ours": ours, "numpy": numpy}
    text = json.dumps(stored, indent=1)
    STORED.write_text(re.sub(r"\n {5,}", " ", text) + "\n")  # one line per function
    (DOCS / "coverage.md").write_text(page(stored))


if __name__ == "__main__":
    main(sys.argv[1:])
