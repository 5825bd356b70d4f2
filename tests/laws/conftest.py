"""Every law for every registered operation.

A test of a law takes `op`; it is run for each operation that the packages of wengert have
registered, whoever added it.  What a law says and how it is checked stands in `wengert.testing`,
where users find it for their own operations; a file here only names it.
"""


def pytest_generate_tests(metafunc):
    if "op" in metafunc.fixturenames:
        operations = metafunc.config.operations
        metafunc.parametrize("op", operations.values(), ids=operations.keys())
