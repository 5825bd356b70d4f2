"""The oldest versions that pyproject.toml allows, and the tests that run with them.

    python tests/oldest.py requirements    what to install: each lower bound, exactly
    python tests/oldest.py tests           files that need every part of what is installed

`make test-oldest` runs this.  The selection is short, for `make test` takes it along, and broad: a
name that an older NumPy or SciPy has not, or a text that an older LLVM reads otherwise, shows in
the first program that meets it.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ("pytest", "pytest-timeout", "hypothesis", "mpmath")  # as new as you like
TESTS = """
    backends/test_backends.py backends/llvm/test_execution_engine.py backends/llvm/test_entry.py
    backends/llvm/test_half_precision_symbols.py backends/llvm/test_integers.py
    backends/llvm/test_kernels_random.py backends/llvm/test_kernels_solving.py
    backends/llvm/test_kernels_gemm.py backends/llvm/test_exponential.py
    backends/llvm/test_one_hot.py backends/llvm/test_strides_beside_variables.py
    backends/llvm/test_partial_vectors.py jit/test_jit.py numpy/test_creation.py
    numpy/test_products.py rewrite/test_factored_loops.py scipy/test_linalg_names.py
""".split()


def requirements(project: dict) -> list[str]:
    """Lower bounds of a project's dependencies as exact versions, and the tools of the tests."""
    exact = []
    for line in project["dependencies"]:
        found = re.fullmatch(r"([\w-]+)>=([\d.]+)", line)
        if found is None:
            raise SystemExit(f"{line!r} in pyproject.toml has no lower bound of the form name>=1.2")
        exact.append(f"{found[1]}=={found[2]}")  # 2.1 is 2.1.0
    known = project["optional-dependencies"]["dev"]
    return exact + [line for line in known if re.split(r"[<>=]", line)[0] in TOOLS]


def main(what: str) -> None:
    """Print one of both, in a line each."""
    if what == "tests":
        print("\n".join(f"tests/{name}" for name in TESTS))
        return
    with (ROOT / "pyproject.toml").open("rb") as file:
        print("\n".join(requirements(tomllib.load(file)["project"])))


if __name__ == "__main__":
    main(sys.argv[1])
