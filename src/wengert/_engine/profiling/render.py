"""Rendering of a profile as text, SVG and HTML.

text      two tables: the user's lines, and steps
picture   an SVG document (profiling/flamegraph.py)
html      the picture with both tables, for a notebook; page for a file
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from wengert._engine.core.display import duration, memory
from wengert._engine.core.node_properties import short

from .flamegraph import FlameBar, LineBar, flames

if TYPE_CHECKING:
    from .profile_data import LineProfile, ProfileData, ProfileRow
    from .record import StepRecord

_LINES, _SCOPES, _STEPS = 15, 20, 40  # limits of printed rows
_SMALL_SHARE = 0.002  # steps with a smaller share are omitted where there are many
_TEXT, _WHAT = 46, 64  # widths of source text and of descriptions, in characters
_NOTE = "~ divided among the lines of one step by estimated work"


def text(profile: ProfileData) -> str:
    """The profile as tables of text."""
    text_lines = _head(profile)
    lines, omitted = _lines(profile)
    text_lines += ["", *_table(_LINE_HEAD, [_line_cells(x) for x in lines], "<<>>>>>>"), *omitted]
    if any(x.is_estimated for x in lines):
        text_lines.append(_NOTE)
    scopes = list(profile.by_scope().items())
    if len(scopes) > 1:
        cells = [_scope_cells(name, s, profile.seconds) for name, s in scopes[:_SCOPES]]
        text_lines += ["", *_table(_SCOPE_HEAD, cells, "<>>")]
    rows, omitted = _rows(profile)
    several = _with_several_bodies(profile.rows)
    cells = [_row_cells(x, x.number.rpartition(".")[0] in several) for x in rows]
    text_lines += ["", *_table(_ROW_HEAD, cells, "<<>>>>>>"), *omitted]
    return "\n".join(text_lines)


def picture(profile: ProfileData, path: Any = None) -> str:
    """The profile as an SVG document."""
    around = profile.rows[-1]
    bars = [_bar(step, profile.seconds) for step in profile.timing.steps]
    bars.append(
        FlameBar("around", around.seconds, "around", _time_label(around.title, around.seconds))
    )
    lines = [
        LineBar(
            x.place,
            x.text,
            x.seconds - x.derivative,
            x.derivative,
            x.is_estimated,
            f"{duration(x.seconds)}  {x.share:.0%}"
            + (f", keeps {memory(x.kept)}" if x.kept else ""),
        )
        for x in profile.by_line()
    ]
    return flames(bars, lines, _head(profile)[0], _head(profile)[1], path)


def html(profile: ProfileData) -> str:
    """A picture and two tables, as an HTML fragment."""
    lines, _ = _lines(profile)
    rows, _ = _rows(profile)
    return (
        f"<div>{picture(profile)}"
        f"{_html_table(_LINE_HEAD, map(_line_cells, lines))}"
        f"{_html_table(_ROW_HEAD, map(_row_cells, rows))}<p>{escape(_NOTE)}</p></div>"
    )


def page(profile: ProfileData) -> str:
    """A complete HTML page."""
    style = (
        "body{font-family:sans-serif;max-width:980px;margin:2em auto}"
        "td,th{padding:2px 8px;text-align:left;font-size:13px}code{font-size:12px}"
    )
    return (
        f'<!doctype html><html><head><meta charset="utf-8"><title>{escape(profile.name)}</title>'
        f"<style>{style}</style></head><body>{html(profile)}</body></html>\n"
    )


# ---- cells ---------------------------------------------------------------------------------------


def _head(profile: ProfileData) -> list[str]:
    timing = profile.timing
    count = len(timing.steps)
    steps = "1 step" if count == 1 else f"{count} steps"
    sizes = "".join(f", {name} = {n}" for name, n in sorted(timing.sizes.items()))
    threads = "1 thread" if timing.threads == 1 else f"up to {timing.threads} threads"
    differs = abs(timing.plain - profile.seconds) > 0.02 * profile.seconds
    plain = f" ({duration(timing.plain)} without clocks)" if differs else ""
    return [
        f"{profile.name}: {duration(profile.seconds)} a call{plain} in {steps}, "
        f"{timing.backend}, {threads}{sizes}",
        f"memory: {memory(timing.inputs)} of arguments, {memory(timing.outputs)} of results, "
        f"{memory(timing.workspace)} of intermediate values; peak {memory(timing.peak)}",
    ]


_LINE_HEAD = ("your lines", "", "time", "share", "deriv.", "moved", "kept", "steps")
_SCOPE_HEAD = ("scopes, with nested ones", "time", "share")
_ROW_HEAD = ("steps", "", "time", "share", "calls", "GB/s", "Gflop/s", "held")


def _scope_cells(name: str, seconds: float, call_seconds: float) -> tuple[str, ...]:
    return f"  {name or '(none)'}", duration(seconds), f"{seconds / call_seconds:.0%}"


def _line_cells(line: LineProfile) -> tuple[str, ...]:
    mark = "~ " if line.is_estimated else "  "
    moved = line.read + line.written
    share = f"{line.derivative / line.seconds:.0%}" if line.derivative and line.seconds else ""
    steps = ", ".join(line.steps[:3]) + (", ..." if len(line.steps) > 3 else "")
    return (
        mark + line.place,
        _truncated(line.text, _TEXT),
        duration(line.seconds),
        f"{line.share:.0%}",
        share,
        memory(moved) if moved else "",
        memory(line.kept) if line.kept else "",
        steps,
    )


def _row_cells(row: ProfileRow, names_body: bool = False) -> tuple[str, ...]:
    indent = "  " * row.depth
    what = _described(row.title, row.operations, row.lines)
    return (
        f"  {indent}{row.number or 'around'} {'' if row.kind == 'around' else row.kind}".rstrip(),
        _truncated(f"<{row.body}> {what}" if names_body else what, _WHAT),
        duration(row.seconds),
        f"{row.share:.0%}",
        "" if row.calls in (0.0, 1.0) else f"{row.calls:,.6g}",
        "" if row.kind == "loop" else _rate(row.gbytes),
        _rate(row.gflops),
        memory(row.held) if row.held else "",
    )


def _described(title: str, operations: Sequence[str], lines: Sequence[tuple[str, float]]) -> str:
    """A short description of a step: the operations of a nest, else the source line."""
    name = title.split(" ", 1)[0]
    if operations and name not in operations:
        listed = ", ".join(operations[:4]) + (", ..." if len(operations) > 4 else "")
        return f"{listed} {title}"
    line = short(lines[0][0]) if len(lines) == 1 and lines[0][0] != "(call)" else ""
    return f"{title}  {line}".rstrip()


def _with_several_bodies(rows: Sequence[ProfileRow]) -> set[str]:
    """The numbers of loops and branches whose steps are in more than one body."""
    bodies: dict[str, set[str]] = {}
    for row in rows:
        if row.depth:
            bodies.setdefault(row.number.rpartition(".")[0], set()).add(row.body)
    return {number for number, names in bodies.items() if len(names) > 1}


def _truncated(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _rate(value: float | None) -> str:
    return "" if value is None or value < 0.0005 else f"{value:.3g}"


def _bar(step: StepRecord, call_seconds: float) -> FlameBar:
    lines = [short(part.where) for part in step.parts if part.where]
    suffix = f" ({', '.join(dict.fromkeys(lines))})" if lines else ""
    label = _described(step.title, step.operations, ())
    if step.operations and step.title.split(" ", 1)[0] not in step.operations:
        label = f"{', '.join(step.operations)} {step.title}"
    body = f" in <{step.body}>" if step.body else ""
    share = step.seconds / call_seconds
    note = f"{step.kind} {label}{body}{suffix}: {duration(step.seconds)}, {share:.1%}"
    if step.calls != 1.0:
        note += f", {step.calls:,.6g} times"
    if step.held:
        note += f"; {memory(step.held)} held"
    inside = tuple(_bar(s, call_seconds) for s in step.inside)
    return FlameBar(label, step.seconds, step.kind, note, inside, step.held)


def _time_label(title: str, seconds: float) -> str:
    return f"{title}: {duration(seconds)}"


# ---- tables --------------------------------------------------------------------------------------


def _lines(profile: ProfileData) -> tuple[list[LineProfile], list[str]]:
    return _first(profile.by_line(), _LINES, lambda x: x.share, "lines")


def _rows(profile: ProfileData) -> tuple[list[ProfileRow], list[str]]:
    """The rows to print; if there are many, equal steps are merged and small ones omitted."""
    rows = list(profile.rows)
    if len(rows) <= _STEPS:
        return rows, []
    groups: dict[Any, list[ProfileRow]] = {}
    for row in rows:
        key = row.number if row.kind in ("loop", "branch", "around") else _merge_key(row)
        groups.setdefault(key, []).append(row)
    merged = [_merged(group) for group in groups.values()]
    large = sorted(merged, key=lambda r: -r.share)[:_STEPS]
    minimum = max(_SMALL_SHARE, large[-1].share)
    printed = [r for r in merged if r.share >= minimum or r.kind == "around"]
    omitted = len(merged) - len(printed)
    return printed, [f"  and {omitted} more of less than {minimum:.1%} each"] if omitted else []


def _merge_key(row: ProfileRow) -> Any:
    """The key by which steps of one loop with equal operations and lines are merged."""
    parent = row.number.rpartition(".")[0]
    return parent, row.kind, row.title, row.operations, row.lines, row.body


def _merged(rows: Sequence[ProfileRow]) -> ProfileRow:
    """Merge identical steps."""
    if len(rows) == 1:
        return rows[0]
    return replace(
        rows[0],
        title=f"{rows[0].title}, {len(rows)} such steps",
        calls=sum(r.calls for r in rows),
        seconds=sum(r.seconds for r in rows),
        share=sum(r.share for r in rows),
        flops=None if rows[0].flops is None else sum(r.flops or 0.0 for r in rows),
        read=sum(r.read for r in rows),
        written=sum(r.written for r in rows),
        held=max(r.held for r in rows),
    )


def _first(
    items: Sequence[Any], limit: int, share: Callable[[Any], float], what: str
) -> tuple[list[Any], list[str]]:
    others = items[limit:]
    omitted = [f"  and {len(others)} more {what}, {sum(map(share, others)):.1%}"] if others else []
    return list(items[:limit]), omitted


def _table(head: Sequence[str], cells: Sequence[Sequence[str]], sides: str) -> list[str]:
    rows = [head, *cells]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    used = [k for k in range(len(head)) if any(row[k] for row in cells)]
    return [
        "  ".join(
            row[k].ljust(widths[k]) if sides[k] == "<" else row[k].rjust(widths[k]) for k in used
        ).rstrip()
        for row in rows
    ]


def _html_table(head: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    rows = ["<tr>" + "".join(f"<th>{escape(x)}</th>" for x in head) + "</tr>"]
    for row in cells:
        shown = [
            x.lstrip() if k else x.replace("  ", "&ensp;") for k, x in enumerate(map(escape, row))
        ]
        shown[1] = f"<code>{shown[1]}</code>"
        rows.append("<tr>" + "".join(f"<td>{x}</td>" for x in shown) + "</tr>")
    return f"<table>{''.join(rows)}</table>"
