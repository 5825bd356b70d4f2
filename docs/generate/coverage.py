"""Write docs/coverage.md: every function of NumPy and SciPy that is here is called and looked at.

The facts are kept in docs/coverage.json, from which the page is written, and which the tests look
at.  It takes about six minutes.  With ARRAY_API_TESTS naming a checkout of the public suite of the
array API standard, its figures are taken anew as well; else they stay as they are.

    python docs/generate/coverage.py            all of it
    python docs/generate/coverage.py numpy.fft  the facts of some namespaces
    python docs/generate/coverage.py --new      what was not there, or could not do everything
    python docs/generate/coverage.py --page     the page alone, from the facts that are kept
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

KEPT = DOCS / "coverage.json"
RIGHT = "reverse", "forward", "order 2", "vmap", "traced"


def figures(module):
    """How many tests of the public suite pass, fail and are skipped for a namespace."""
    command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "--disable-deadline"]
    command += ["--derandomize", "-p", "no:cacheprovider", "--tb=no", "-W", "ignore"]
    source = str(DOCS.parent / "src")
    environment = {**os.environ, "ARRAY_API_TESTS_MODULE": module, "PYTHONPATH": source}
    folder = Path(os.environ["ARRAY_API_TESTS"]).expanduser()
    said = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    last = said.stdout.strip().splitlines()[-1]
    count = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped)", last)}
    return {what: count.get(what, 0) for what in ("passed", "failed", "skipped")}


def looked_at(space, known):
    """The facts about a namespace; those that are known of what can do everything stay."""
    both, missing = names_of(space)
    right = [n for n in both if all(known.get(n, {}).get(key) is True for key in RIGHT)]
    stay = {n: known[n] for n in right}
    found = {**stay, **collected(space, [n for n in both if n not in stay])}
    return {"functions": {name: found[name] for name in both}, "missing": missing}


def main(asked):
    """Collect what is asked for, and write the facts and the page."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"spaces": {}, "suite": {}}
    if "--page" not in asked:
        short = [".".join(m.__version__.split(".")[:2]) for m in (np, scipy)]
        kept["versions"] = dict(zip(("numpy", "scipy"), short, strict=True))
        only_new = "--new" in asked
        for space in SPACES if only_new else asked or SPACES:
            known = kept["spaces"].get(space, {}).get("functions", {}) if only_new else {}
            kept["spaces"][space] = looked_at(space, known)
        kept["spaces"] = {space: kept["spaces"][space] for space in SPACES}
    if os.environ.get("ARRAY_API_TESTS") and "--page" not in asked:
        ours, numpy = figures("wengert.testing.array_api"), figures("numpy")
        version = np.__array_api_version__
        kept["suite"] = {"version": version, "ours": ours, "numpy": numpy}
    KEPT.write_text(re.sub(r"\n {5,}", " ", json.dumps(kept, indent=1)) + "\n")  # a fact a line
    (DOCS / "coverage.md").write_text(page(kept))


if __name__ == "__main__":
    main(sys.argv[1:])
