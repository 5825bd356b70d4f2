"""The tests of walnutpie's own suite of functions, run on our C function.

    python tests/compat/sampler_suites.py PATH    PATH is a checkout of flatironinstitute/walnuts

The suite defines a density `logp`, of normal numbers, that all its tests sample; here that is the C
function of a `Posterior`.  Nothing of the checkout is changed.  Needs walnutpie and pytest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import walnutpie

import wengert as wg


class OurDensity:
    """A plugin of pytest that replaces `logp` in the modules that it collects.

    replaced : how many were replaced.
    """

    def __init__(self) -> None:
        self.pointers: list[Any] = []
        self.replaced = 0

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Replace it once in each module; tests have vectors of 2 and of 4 numbers."""

        def log_density(x: Any) -> Any:
            return np.sum(-0.5 * x * x - 0.5 * np.log(2.0 * np.pi))

        pointer = wg.jit(wg.value_and_grad(log_density)).address(wg.spec("n"), signature="logp")
        self.pointers.append(pointer)  # the code is freed with it
        for module in {item.module for item in items}:
            module.logp = (walnutpie.logp_cfunc_type(pointer.address), None)
            self.replaced += 1


def main() -> int:
    """Run the suite; the status of pytest."""
    path = Path(sys.argv[1]) / "python" / "tests" / "test_pyfunc.py"
    plugin = OurDensity()
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(path.parent), str(path)]
    status = pytest.main(options, plugins=[plugin])
    print(f"{plugin.replaced} modules sampled our function")
    return int(status) or int(plugin.replaced == 0)


if __name__ == "__main__":
    sys.exit(main())
