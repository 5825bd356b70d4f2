"""Groups and blocks: every line has one place, no box has too many members, loops are cut between
iterations; and the clusters of DOT, which are the same groups."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert as wg
from wengert import show
from wengert._engine.visualization.node_groups import FAN, grouping_of, level_name, ranges


def members(grouping):
    """For each group how many lines and groups it holds directly."""
    counts = [0] * len(grouping.groups)
    for g in grouping.home:
        counts[g] += 1
    for g in grouping.groups[1:]:
        counts[g.parent] += 1
    return counts


@given(st.integers(1, 3000), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_ranges_cover_everything_in_order(count, seed):
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, count, size=(2 * count, 2)), axis=1)
    edges = [(int(a), int(b)) for a, b in ends if a < b]
    found = ranges(count, edges)
    assert [k for start, stop in found for k in range(start, stop)] == list(range(count))
    assert all(stop > start for start, stop in found) and len(found) <= FAN
    assert (len(found) == 1) == (count <= FAN)


def test_cuts_are_where_few_values_cross():
    # Seven lines an iteration, one value carried on.
    edges = [(k, k + 1) for k in range(6999)]
    edges += [(7 * i, 7 * i + j) for i in range(1000) for j in range(2, 7)]
    assert all(start % 7 in (0, 1) for start, _ in ranges(7000, edges))


def deep(x):
    y = x
    for k in range(40):
        with wg.scope("even" if k % 2 else "odd"), wg.scope(f"step{k % 5}"):
            for _ in range(7):
                y = np.sin(y) * x + 1.0
    return np.sum(y)


def test_no_group_has_too_many_members():
    graph = wg.trace(deep)(wg.spec(3))
    grouping = grouping_of(graph)
    assert max(members(grouping)) <= FAN and min(members(grouping)) >= 1
    assert any(g.kind == "block" for g in grouping.groups)
    whole = grouping_of(graph, blocks=False)
    assert {g.kind for g in whole.groups} == {"graph", "scope"}
    assert max(members(whole)) > FAN


def test_lines_of_a_scope_stay_inside_it():
    graph = wg.trace(deep)(wg.spec(3))
    groups, home = grouping_of(graph)
    for i, node in enumerate(graph.nodes):
        path, g = [], home[i]
        while groups[g].parent >= 0:
            if groups[g].kind == "scope":
                path.insert(0, groups[g].name)
            g = groups[g].parent
        if node.scope:
            assert "/".join(path) == node.scope


def test_leaves_go_where_they_are_used():
    weight = wg.variable(np.ones(3), "weight")

    def f(x):
        with wg.scope("inner"):
            y = weight * x * np.arange(3.0)
        return np.sum(y)

    graph = wg.trace(wg.grad(f))(wg.spec(3))
    groups, home = grouping_of(graph)
    place = {
        node.op.name if node.name is None else node.name: home[i]
        for i, node in enumerate(graph.nodes)
    }
    assert place["x"] == 0
    assert groups[place["weight"]].name == "inner" and groups[place["constant"]].name == "inner"


def test_levels_have_names():
    assert [level_name(k) for k in (0, 1, 2)] == [
        "function",
        "first derivative",
        "second derivative",
    ]
    assert level_name(7) == "derivative of order 7"
    graph = wg.trace(wg.grad(wg.grad(lambda x: np.exp(x) * x)))(wg.spec(()))
    found = [g.name for g in grouping_of(graph).groups if g.kind == "level"]
    assert sorted(found) == ["first derivative", "function", "second derivative"]


# ---- DOT ---------------------------------------------------------------------------------------


def example():
    count = wg.variable(0.0, "count")

    def f(x, w):
        with wg.scope('out "er"'), wg.scope("in\\ner\n"):
            h = np.tanh(x @ w)
        count[...] = count + np.sum(h)
        return np.sum(np.floor(h) + h * 2.0)

    return wg.trace(wg.grad(f, argnums=(0, 1)))(wg.spec(("n", 3)), wg.spec((3, 2)))


def test_dot_has_a_cluster_for_each_group():
    graph = example()
    text = show.to_dot(graph)
    groups, _ = grouping_of(graph, blocks=False)
    assert text.count("subgraph cluster_") == len(groups) - 1
    assert text.count("{") == text.count("}") == len(groups)
    for i in range(len(graph)):
        assert len(re.findall(rf"^ +n{i} \[", text, re.M)) == 1
    edges = re.findall(r"^  n(\d+) -> n(\d+);", text, re.M)
    assert sorted((int(a), int(b)) for a, b in edges) == sorted(
        (a, b) for b in range(len(graph)) for a in graph.operands(b)
    )


def test_what_only_waits_is_dashed():
    graph = wg.trace(lambda x: wg.after(np.sin(x), np.cos(x)))(wg.spec(2))
    names = [n.op.name for n in graph.nodes]
    sine, cosine, after = (names.index(name) for name in ("sin", "cos", "after"))
    text = show.to_dot(graph)
    assert f"n{sine} -> n{after};" in text
    assert f'n{cosine} -> n{after} [style="dashed"' in text


def test_updates_and_effects_are_dashed():
    graph = example()
    (old, new), *_ = graph.updates.items()
    graph.effects = (graph.nodes[-1],)
    text = show.to_dot(graph)
    (edge,) = re.findall(r'^  n(\d+) -> n(\d+) \[style="dashed".*label="update"', text, re.M)
    assert edge == (str(graph.index(new)), str(graph.index(old)))
    assert re.search(rf"n{len(graph) - 1} -> run \[style=\"dashed\"", text)


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
@pytest.mark.parametrize("name", ['"', "\\", '\\"', "a\nb", "</b>", "{x|y}", "é\u2028"])
def test_graphviz_reads_it_and_names_are_what_they_were(name):
    graph = wg.trace(lambda x: wg.input(name or "x") * x)(wg.spec(()))
    for text in (show.to_dot(graph), show.to_dot(example())):
        done = subprocess.run(
            ["dot", "-Tplain"], input=text, capture_output=True, text=True, check=True
        )
        assert not done.stderr
        assert done.stdout.count("\nnode ") == len(re.findall(r"^ +n\d+ \[", text, re.M))
