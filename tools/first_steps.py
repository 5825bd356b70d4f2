"""Follow the pages for beginners literally, in a new environment: a part of `make test-all`.

    PAGES       what is followed, in order: the commands of installation.md, in a shell, and the
                code of the pages, as a notebook would run it
    commands    the lines of the first block of shell commands of a page
    FOLLOWER    the program that runs the code of a page; it needs nothing but Python
    main        makes the environment, and follows the pages:
                python tools/first_steps.py [--python python3.12]

Installing downloads the dependencies with pip, as configured.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INSTALLATION = ROOT / "docs" / "installation.md"
PAGES = INSTALLATION, ROOT / "docs" / "getting-started.md"
FOLLOWER = r"""
import doctest, linecache, pathlib, re, sys

page, names, count = pathlib.Path(sys.argv[1]), {"__name__": "__main__"}, 0
options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
for block in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
    count += 1
    if block.startswith(">>>"):
        examples = doctest.DocTestParser().get_doctest(block, {}, page.name, str(page), 0)
        examples.globs = names
        if doctest.DocTestRunner(optionflags=options).run(examples, clear_globs=False).failed:
            sys.exit(f"{page.name}: the output differs from the page")
    else:
        file = f"<cell {count}>"
        linecache.cache[file] = len(block), None, block.splitlines(True), file
        exec(compile(block, file, "exec"), names)
assert "site-packages" in names["wg"].__file__, names["wg"].__file__
print(f"{page.name}: {count} blocks of code")
"""


def commands(page: Path) -> list[str]:
    """The lines of the first block of shell commands."""
    found = re.search(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None, f"{page} has no commands"
    return found[1].splitlines()


def main() -> int:
    """Do what the pages say."""
    parser = argparse.ArgumentParser(description="Follow the pages for beginners.")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to begin with")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "environment")
        subprocess.run([options.python, "-m", "venv", str(environment)], check=True)
        binaries = str(environment / "bin")
        shell = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "WENGERT"))}
        shell["PATH"] = os.pathsep.join([binaries, shell.get("PATH", "")])
        shell["WENGERT_CACHE"] = str(Path(folder, "cache"))
        for command in commands(INSTALLATION):
            print(f"$ {command}", flush=True)
            subprocess.run(command, shell=True, cwd=ROOT, env=shell, check=True)
        for page in PAGES:
            follower = ["python", "-W", "error", "-c", FOLLOWER, str(page)]
            subprocess.run(follower, cwd=folder, env=shell, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
