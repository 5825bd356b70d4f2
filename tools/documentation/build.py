"""Build the documentation site, as `make docs-site` does.

    python -m tools.documentation.build [--out out/site] [--keep-going]

    prepare     writes the sources that Sphinx reads
    main        prepares and builds; a warning is a failure

The pages are then in out/site/html; open index.html, or run `python -m http.server` there, which
the search needs in some browsers.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import gallery, inventories, notebooks, pages, reference

HERE = Path(__file__).resolve().parent


def prepare(source: Path) -> None:
    """Write the sources of the site to a folder, which is emptied before."""
    shutil.rmtree(source, ignore_errors=True)
    pages.copy(source)
    notebooks.publish(source / "tutorials")
    gallery.write(source / "gallery")
    reference.write(source / "api")


def main(arguments: list[str] | None = None) -> int:
    """Build the site, and give the exit status of Sphinx."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=pages.ROOT / "out" / "site")
    parser.add_argument("--keep-going", action="store_true", help="show all warnings")
    options = parser.parse_args(arguments)
    source, html = options.out / "source", options.out / "html"
    prepare(source)
    mapping = inventories.write(options.out / "inventories")
    environment = {**os.environ, "SITE_INVENTORIES": json.dumps(mapping)}
    paths = [str(pages.ROOT / "src"), str(pages.ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-c", str(HERE), "-W"]
    command += ["-d", str(options.out / "doctrees"), "-j", "2"]
    if not options.keep_going:
        command.append("--exception-on-warning")
    status = subprocess.run([*command, str(source), str(html)], env=environment).returncode
    print(f"{html / 'index.html'}" if status == 0 else "the site has warnings or errors")
    return status


if __name__ == "__main__":
    sys.exit(main())
