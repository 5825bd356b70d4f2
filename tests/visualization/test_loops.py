"""Loops and branches in pictures: what they do is drawn inside of them, and said once in text."""

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from tests.rewrite.test_loops import DERIVATIVES, PROGRAMS

import wengert as wg
from wengert import control, show
from wengert._engine.visualization.node_groups import expanded


def traced(name, kind="value"):
    f, *args = PROGRAMS[name]
    return wg.trace(DERIVATIVES[kind](f))(*args)


def test_a_graph_is_printed_with_what_its_loops_do():
    def f(x, w):
        def step(v, _):
            return np.sin(v * w), None

        return control.scan(step, x, None, length=3)[0]

    text = str(wg.trace(f)(wg.spec(()), wg.spec(())))
    lines = [re.sub(r"   *", "  ", line.partition("#")[0]).rstrip() for line in text.splitlines()]
    assert lines == [
        "%0 = input x  float64[]",
        "%1 = input w  float64[]",
        "%2 = scan %1 %0  [body=<scan>, carried=1, stacked=0, length=3]  (float64[])",
        "%3 = part %2  [index=0]  float64[]",
        "return %3",
        "<scan> takes %1 %0",
        "  %0 = input  float64[]",
        "  %1 = input w  float64[]",
        "  %2 = multiply %0 %1  float64[]",
        "  %3 = sin %2  float64[]",
        "  return %3",
    ]


def test_each_body_is_printed_once_under_its_own_name():
    def f(x):
        for n in (3, 4):
            x = control.fori_loop(0, n, lambda i, v: np.sin(v), x)
        return control.fori_loop(0, 5, lambda i, v: np.cos(v), x)

    text = str(wg.trace(f)(0.5))
    assert text.count("body=<fori_loop>,") == 2 and text.count("body=<fori_loop #2>") == 1
    assert [line for line in text.splitlines() if line.startswith("<")] == [
        "<fori_loop> takes %0 %1",
        "<fori_loop #2> takes %0 %1",
    ]
    assert text.count("sin %") == text.count("cos %") == 1


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_tables_pictures_and_pages(name):
    graph = traced(name)
    assert "\n<" in show.table(graph)
    ET.fromstring(show.to_svg(graph))
    dot = show.to_dot(graph)
    assert dot.count("{") == dot.count("}") and 'label="carry' in dot
    page = show.explore(traced(name, "value_and_grad").simplify(history=True))
    assert "<Graph of" not in page and "<Graph of" not in dot + show.table(graph)


def test_a_loop_is_a_box_with_its_body_inside():
    svg = ET.fromstring(show.to_svg(traced("nested")))
    spaces = {"s": "http://www.w3.org/2000/svg"}
    assert len(svg.findall(".//s:g[@transform]/s:g[@transform]/s:g[@transform]", spaces)) == 1
    words = [t.text for t in svg.iterfind(".//s:text", spaces)]
    assert words.count("carry") == 3 and words.count("row") == 1 and "cos" in words


def test_what_is_drawn_lies_inside_its_box():
    def boxes(group, x, y):
        """All rectangles with the group's offsets added, by depth."""
        for child in group:
            if child.tag.endswith("rect") and child.get("x"):
                a, b, w, h = (float(child.get(k)) for k in ("x", "y", "width", "height"))
                yield (x + a, y + b, x + a + w, y + b + h)
            elif child.tag.endswith("g"):
                found = re.match(r"translate\(([-\d.]+) ([-\d.]+)\)", child.get("transform", ""))
                dx, dy = map(float, found.groups()) if found else (0.0, 0.0)
                yield from boxes(child, x + dx, y + dy)

    found = list(boxes(ET.fromstring(show.to_svg(traced("chosen"))), 0.0, 0.0))
    largest = max(found, key=lambda r: (r[2] - r[0]) * (r[3] - r[1]))
    inside = [
        r
        for r in found
        if largest[0] <= r[0] and r[2] <= largest[2] and largest[1] <= r[1] <= r[3] <= largest[3]
    ]
    assert len(inside) > 20
    overlapping = [
        (a, b)
        for i, a in enumerate(found)
        for b in found[i + 1 :]
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]
    for a, b in overlapping:  # one lies in the other
        outer, inner = sorted((a, b), key=lambda r: -(r[2] - r[0]) * (r[3] - r[1]))
        assert outer[0] < inner[0] and inner[2] < outer[2]
        assert outer[1] < inner[1] and inner[3] < outer[3]


def test_an_opened_list_is_only_looked_at():
    graph = traced("nested", "value_and_grad").simplify()
    before = str(graph)
    whole, place = expanded(graph)
    assert str(graph) == before and len(whole) > len(graph)
    assert whole.inputs == graph.inputs and len(whole.outputs) == len(graph.outputs)
    assert all(n.op.kind == "control" or place[n] in whole for n in place)
    scopes = {n.scope for n in whole}
    assert {"scan", "scan/fori_loop", "scan, backwards/fori_loop, backwards"} <= scopes
    plain = wg.trace(np.sin)(0.5)
    assert expanded(plain) == (plain, {})


def test_a_page_knows_values_and_groups():
    _, w, _ = PROGRAMS["recurrent"]
    graph = traced("recurrent")
    page = show.explore(graph, values={graph.inputs[0]: w})
    data = json.loads(re.search(r'type="application/json"[^>]*>(.*?)</script>', page, re.S)[1])
    texts = data["texts"]
    (step,) = data["steps"]
    assert "scan" in [texts[name] for _, name, _ in step["groups"]]
    assert {"carry", "row", "tanh"} <= {op["name"] for op in data["ops"]}
