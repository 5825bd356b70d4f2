"""Every law for every registered operation.

A test of a law takes `op`; it is run for each operation that `import wengert` and the packages
above it have registered, whoever added it.  What a law says and how it is checked stands in
`wengert.testing`, where users find it for their own operations; a file here only names it.
"""

import importlib

from wengert.core.op import REGISTRY

for _package in ("nn", "extend"):  # they may register operations of their own
    importlib.import_module(f"wengert.{_package}")
OPERATIONS = dict(REGISTRY)


def pytest_generate_tests(metafunc):
    if "op" in metafunc.fixturenames:
        metafunc.parametrize("op", OPERATIONS.values(), ids=OPERATIONS.keys())
