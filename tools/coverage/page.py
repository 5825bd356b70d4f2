"""docs/coverage.md, written from facts that have been collected.

    page        the whole text
    counted     how many functions of a namespace can do what

The facts are kept in docs/coverage.json, so that the page can be written, and checked, without
calling every function again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .reasons import REASONS, reason_of

Facts = Mapping[str, Any]
LETTERS = {"float16": "h", "float32": "f", "float64": "d", "complex64": "F", "complex128": "D"}
NONE = "not called", "fails", "refused", "detached"

HEAD = """# Coverage

Every public function of NumPy, and of the packages of SciPy that wengert has, by name. This page is
written by `docs/generate/coverage.py`, and tests say when it is stale. Nothing in the tables is
claimed by hand: each function was called, and what is written here was seen.

* **derivatives**: *both, twice*: reverse and forward mode agree with differences of the function
  itself, and so do the derivatives of these; *both, once*: to first order.
* **rows**: `vmap` of it is what a loop gives. **graph**: the traced function gives the same values.
* **native**: *code*: the compiled function, and its compiled gradient, call nothing in Python;
  *calls*: the operations named are called back in Python.
* **dtypes** in which the values are NumPy's or SciPy's, and gradients have the dtype of what they
  are by: h float16, f float32, d float64, F complex64, D complex128. With a star the result has
  another precision than SciPy's, which is not always that of the operands; in parentheses stand
  those that NumPy or SciPy takes besides.

NumPy {numpy}, SciPy {scipy}.
"""

SUITE = """## The array API standard

Tensors follow the array API standard {version}: `x.__array_namespace__()` is `wengert.numpy`, and
`wengert.testing.array_api` is the same namespace with creation functions that make tensors. The
public suite of the standard, `data-apis/array-api-tests`, gives

| arrays of | passed | failed | skipped |
|---|---|---|---|
| wengert (tensors) | {ours[passed]} | {ours[failed]} | {ours[skipped]} |
| NumPy | {numpy[passed]} | {numpy[failed]} | {numpy[skipped]} |

What fails of tensors fails of NumPy's arrays too; `tests/array_api/xfails.txt` lists it with the
reasons. The suite is no package, so the test that runs it is skipped where there is none. To run
it, clone it with its submodule, install its requirements, and name it:

```sh
git clone --recurse-submodules https://github.com/data-apis/array-api-tests
python -m pip install -r array-api-tests/requirements.txt
ARRAY_API_TESTS=array-api-tests python -m pytest -m slow tests/array_api
```
"""


def page(kept: Mapping[str, Any]) -> str:
    """The text of the page.

    Parameters
    ----------
    kept : mapping
        As docs/coverage.json has it: ``versions``, ``spaces``, ``suite``.
    """
    parts = [HEAD.format(**kept["versions"]), _summary(kept["spaces"])]
    for space, found in kept["spaces"].items():
        parts.append(_section(space, found["functions"], found["missing"]))
    parts.append(SUITE.format(**kept["suite"]))
    return "\n".join(parts)


def counted(functions: Mapping[str, Facts]) -> dict[str, int]:
    """How many functions can do what."""
    differentiable = [f for f in functions.values() if f["kind"] == "differentiable"]
    return {
        "functions": len(functions),
        "differentiable": len(differentiable),
        "both modes, order two": sum(_derivatives(f) == "both, twice" for f in differentiable),
        "rows": sum(f["vmap"] is True for f in differentiable),
        "graph": sum(f["traced"] is True for f in differentiable),
        "native code": sum(f["native"] is True for f in differentiable),
    }


def _summary(spaces: Mapping[str, Any]) -> str:
    rows, head = [], None
    for space, found in spaces.items():
        counts = counted(found["functions"]) | {"not here": len(found["missing"])}
        head = head or list(counts)
        rows.append(f"| [{space}](#{space.replace('.', '')}) | {_cells(counts.values())} |")
    assert head is not None
    return "\n".join([f"| | {_cells(head)} |", "|---" * (len(head) + 1) + "|", *rows, ""])


def _cells(values: Any) -> str:
    return " | ".join(map(str, values))


def _section(space: str, functions: Mapping[str, Facts], missing: list[str]) -> str:
    lines: list[str] = [f"## {space}", ""]
    notes: list[str] = []
    lines += ["| function | derivatives | rows | graph | native | dtypes |", "|---" * 6 + "|"]
    for name, found in functions.items():
        if found["kind"] == "differentiable":
            lines.append(_row(name, found, notes))
    lines.append("")
    lines += [f"{k}. {note}" for k, note in enumerate(notes, 1)] + [""] * bool(notes)
    for kind, text in (
        ("steps", "Steps, positions and truth values, whose derivative is known to be 0"),
        ("says", "Answers about arrays, which are plain Python values"),
        ("no floating argument", "Without a floating argument, NumPy's and SciPy's own results"),
    ):
        names = [f"`{n}`" for n, found in functions.items() if found["kind"] == kind]
        if names:
            lines += [f"**{text}:** {' '.join(names)}", ""]
    absent = [n for n, found in functions.items() if found["kind"] in NONE]
    lines += _absent(space, sorted([*missing, *absent]))
    return "\n".join(lines)


def _absent(space: str, names: list[str]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for name in names:
        by_reason.setdefault(reason_of(space, name), []).append(f"`{name}`")
    if not names:
        return []
    lines = ["**Not here:**", ""]
    for reason in [r for r in REASONS if r in by_reason]:
        lines.append(f"* {REASONS[reason]}: {' '.join(by_reason[reason])}")
    return [*lines, ""]


def _row(name: str, found: Facts, notes: list[str]) -> str:
    native = found["native"]
    if isinstance(native, list):
        shown = f"calls {', '.join(native)}"
    else:
        shown = _answer(native, notes, "code")
    stars = {d: "*" if d in found["other precision"] else "" for d in LETTERS}
    kept = [d for d in LETTERS if d in found["dtypes"] or stars[d]]
    dtypes = " ".join(LETTERS[d] + stars[d] for d in kept)
    more = " ".join(LETTERS[d] for d in found["of theirs"])
    dtypes += f" ({more})" if more else ""
    rows, graph = (_answer(found[key], notes, "yes") for key in ("vmap", "traced"))
    return f"| `{name}` | {_derivatives(found)} | {rows} | {graph} | {shown} | {dtypes} |"


def _derivatives(found: Facts) -> str:
    seen = [mode for mode in ("reverse", "forward") if found[mode] is True]
    if len(seen) == 2:
        return "both, twice" if found["order 2"] is True else "both, once"
    return " ".join(seen) or "none"


def _answer(said: Any, notes: list[str], yes: str) -> str:
    """Yes, or no with the number of a note that says what the function said."""
    if said is True:
        return yes
    text = said.split(": ", 1)[-1].split(". ")[0].rstrip(",;: ")
    text = text.split(" depends on the values")[0]
    text = text if text[-1:] in ".!" else text + "."
    if text not in notes:
        notes.append(text)
    return f"no ({notes.index(text) + 1})"
