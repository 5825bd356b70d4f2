"""A page for each program of examples/, and an index of them with pictures.

    write       writes the pages
    page        the text of one page: what the program does, its data, picture, time and source
    DATA        what data each program uses
    measure     runs the programs, and stores their times and pictures in docs/pictures:
                python -m tools.documentation.gallery [NAMES]; pictures of programs that draw none
                are made by `example_pictures`

Pages are made from the docstrings of the programs, whose first line is the title.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .pages import DOCS, ROOT

EXAMPLES = ROOT / "examples"
PICTURES = DOCS / "pictures"
TIMES = PICTURES / "examples.json"
_DIGITS = "1,797 handwritten digits (UCI, 1998)"
DATA = {
    "char_model": "Shakespeare's sonnets, 94 kB of text",
    "conductivity": "temperatures with noise, made in the program",
    "diffusion": _DIGITS,
    "digits": _DIGITS,
    "digits_98": _DIGITS,
    "eight_schools": "effects of coaching in eight schools (Rubin, 1981)",
    "expression_trees": "random expressions, made in the program",
    "factorization": _DIGITS,
    "gaussian_process": "sunspot numbers, 1700-2008",
    "germination": "germination of seeds on 21 plates (Crowder, 1978)",
    "inverse_heat": "temperatures with noise, made in the program",
    "larger_than_memory": "1 GiB of random features, made in the program",
    "lifetimes": "lifetimes of 23 ball bearings (1956), remissions of 42 children (1963)",
    "lynx_hare": "pelts of the Hudson's Bay Company, 1900-1920",
    "neural_ode": "van der Pol's oscillator with noise, made in the program",
    "nile": "flow of the Nile at Aswan, 1871-1970",
    "oregonator": "none: rate constants of Field and Noyes (1974)",
    "penalties": "random points, made in the program",
    "pinn": "none: Burgers' equation and its exact solution",
    "pipeline": "two spirals, made in the program",
    "propane": "none: published equations (Meintjes and Morgan, 1990)",
    "shallow_water": "heights of the water, made in the program",
    "swing_up": "none: a cart and a pendulum",
    "tabular": "tumors, wines and patients of scikit-learn",
    "vae": _DIGITS,
    "volatility": "daily prices of Google, 2004-2008",
}


def programs() -> list[Path]:
    """The examples, in the order of their names."""
    return sorted(EXAMPLES.glob("[a-z]*.py"))


def times() -> dict[str, float]:
    """Seconds of processor time of a run of each program, as measured last."""
    found: dict[str, float] = json.loads(TIMES.read_text(encoding="utf-8"))["seconds"]
    return found


def write(folder: Path) -> None:
    """Write a page for each program, and the index."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Gallery", "", INTRODUCTION, "", "::::{grid} 1 2 3 3", ":gutter: 3", ""]
    for path in programs():
        lines += [f":::{{grid-item-card}} {title(path)}", f":link: {path.stem}", ":link-type: doc"]
        if picture(path).exists():
            lines += [f":img-top: ../pictures/{path.stem}.png"]
        lines += ["", f"`{path.name}`, {duration(path)}. Data: {DATA[path.stem]}", ":::", ""]
    lines += ["::::", "", "```{toctree}", ":hidden:", "", *(p.stem for p in programs()), "```"]
    (folder / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for path in programs():
        (folder / f"{path.stem}.md").write_text(page(path), encoding="utf-8")


INTRODUCTION = (
    "Each program is one file, compares its result with published values or with another method, "
    "and is run by the tests. Times are seconds of processor time of a run in a new process. "
    "[The results of all](../examples.md)."
)


def picture(path: Path) -> Path:
    """The picture that a program draws."""
    return PICTURES / f"{path.stem}.png"


def title(path: Path) -> str:
    """The first line of the docstring of a program."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or path.stem
    return docstring.splitlines()[0].rstrip(".")


def duration(path: Path) -> str:
    """How long a program runs, in words."""
    seconds = times().get(path.stem)
    if seconds is None:
        return "not measured"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def page(path: Path) -> str:
    """The text of the page of a program."""
    text = path.read_text(encoding="utf-8")
    docstring = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[2].strip("\n")
    facts = f"`examples/{path.name}`, {duration(path)}. Data: {DATA[path.stem]}."
    lines = [f"# {title(path)}", "", facts, ""]
    if picture(path).exists():
        lines += [f"![{title(path)}](../pictures/{path.stem}.png)", ""]
    if docstring:
        lines += ["````text", docstring, "````", ""]
    lines += ["## Program", "", "````python", text.rstrip("\n"), "````", ""]
    return "\n".join(lines)


def measure(names: list[str]) -> None:
    """Run programs, all if none is named, and store times and pictures."""
    seconds = times() if TIMES.exists() else {}
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg"}
    for path in programs():
        if names and path.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            before = os.times()
            command = [sys.executable, str(path)]
            subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
            after = os.times()
            used = after.children_user + after.children_system
            seconds[path.stem] = round(used - before.children_user - before.children_system, 1)
            for drawn in Path(folder).rglob(f"{path.stem}.png"):
                if not picture(path).exists():
                    shutil.copy(drawn, picture(path))
        print(f"{path.stem:20} {seconds[path.stem]:8.1f} s", flush=True)
        stored = {"seconds": dict(sorted(seconds.items()))}
        TIMES.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    measure(sys.argv[1:])
