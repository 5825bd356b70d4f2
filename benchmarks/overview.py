"""The page of all benchmarks: docs/benchmarks.md and its plots, from everything under results.

    python benchmarks/overview.py             print the table of targets
    python benchmarks/overview.py --render    write docs/benchmarks.md and docs/plots

A new file of results is taken in as it is; a target is a row of overview/rows.py.
"""

from __future__ import annotations

import argparse
import sys

from _harness import PAGES, table
from overview import page
from overview.results import everything
from overview.rows import ROWS


def main() -> int:
    """Print, or write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--render", action="store_true", help="write the page and its plots")
    found = everything()
    if not parser.parse_args().render:
        print(table(["workload", "wanted", "measured", "", ""], [t.row(found) for t in ROWS]))
        return 0
    (PAGES / page.PLOTS).mkdir(exist_ok=True)
    made = page.files(found)
    for old in (PAGES / page.PLOTS).glob("*.svg"):
        if f"{page.PLOTS}/{old.name}" not in made:
            old.unlink()
    for path, text in made.items():
        (PAGES / path).write_text(text, encoding="utf-8")
    print(f"wrote docs/{page.PAGE} and {len(made) - 1} plots")
    return 0


if __name__ == "__main__":
    sys.exit(main())
