"""The table of CONTRIBUTING.md: code that depends on an interpreter or a memory layout."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def table():
    """The rows of the table: what, file, tests."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*?) \| `((?:_engine|compat)/[\w/]+\.py)` \| (.*?) \|", text, re.M)
    return [(what, file, re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", tests))
            for what, file, tests in rows]  # fmt: skip


def test_the_table_names_files_and_tests_that_exist():
    rows = table()
    assert len(rows) >= 12
    for what, file, tests in rows:
        assert (ROOT / "src" / "wengert" / file).exists(), what
        assert tests, f"no test of: {what}"
        for path, name in tests:
            text = (ROOT / path).read_text(encoding="utf-8")
            assert not name or f"def {name}(" in text, f"{path}::{name}"


def test_reference_counts_and_addresses_are_read_in_listed_files_only():
    listed = {file for _, file, _ in table()}
    pattern = re.compile(
        r"getrefcount|from_address\(id\(|\bexec\(|_at_fork_reinit|__class__ = |set_thresh"
    )
    package = ROOT / "src" / "wengert"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(
            pattern.search(line) and ">>>" not in line
            for line in path.read_text(encoding="utf-8").splitlines()
        )
    }
    assert found - listed == set(), "add a row to the table of CONTRIBUTING.md, with a test"
