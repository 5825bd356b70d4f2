"""The page of a graph, without a browser: what it shows, what it consists of, what stays out."""

import base64
import hashlib
import html
import json
import re
import sys
import types
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
from wengert import errors, show
from wengert._engine.visualization import explorer
from wengert._engine.visualization.explorer.explorer import SCRIPTS, as_json
from wengert._engine.visualization.explorer.page_data import change, steps_of

VOID = {"meta", "input", "link", "br", "img", "hr"}
HOSTILE = [
    "</script><script>window.broken = 1</script>",
    "<!-- <script>",
    "<img src=x onerror=alert(1)>",
    "\u2028\u2029\x00\x1b",
    "\ud800",
    "{{script}} {{data}} \\g<0>",
    "'\"&amp;&lt;",
    "]]>",
]


def model(x, w):
    with wg.scope("encoder"):
        with wg.scope("affine", note="first"):
            h = x @ w
        with wg.scope("activation"):
            h = np.tanh(h)
    with wg.scope("loss"):
        return np.sum(h * h) * 2.0


@pytest.fixture
def graph():
    return wg.trace(model)(wg.spec(("n", 3)), wg.spec((3, 2)))


def data_of(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(found.group(1))


def row(data, line, step=0):
    """What the page knows of a line, in words."""
    p = data["steps"][step]["lines"][line]
    columns = data["lines"]
    texts = "tone name spec kind params scope inline meta".split()
    said = {c: data["texts"][columns[c][p]] for c in texts}
    return {**said, "op": data["ops"][columns["op"][p]], "level": columns["level"][p], "number": p}


# ---- what the page shows   ---------------------------------------------------------------------


def test_every_line_is_reported(graph):
    data = data_of(show.explore(graph))
    step = data["steps"][0]
    assert len(step["lines"]) == len(graph) and data["title"] == "model"
    assert step["outputs"] == [graph.index(n) for n in graph.outputs]
    for i, node in enumerate(graph.nodes):
        said = row(data, i)
        assert said["op"]["name"] == node.op.name
        assert (said["kind"], said["scope"], said["level"]) == (node.kind, node.scope, node.level)
        assert said["spec"] == str(node.spec)
        assert data["lines"]["args"][said["number"]] == [
            step["lines"][graph.index(a)] for a in node.inputs
        ]
    tanh = next(i for i, n in enumerate(graph.nodes) if n.op.name == "tanh")
    assert row(data, tanh)["op"]["formula"] == "tanh(x)"
    assert row(data, tanh)["op"]["kind"] == "elementwise" and row(data, tanh)["op"]["doc"]
    multiply = next(i for i, n in enumerate(graph.nodes) if n.op.name == "multiply")
    assert row(data, multiply)["op"]["formula"] == "multiply(x, y) = x * y"
    matmul = next(i for i, n in enumerate(graph.nodes) if n.op.name == "matmul")
    assert row(data, matmul)["meta"] == "note='first'"


def test_the_users_line_is_reported_with_its_text(graph):
    data = data_of(show.explore(graph))
    tanh = next(i for i, n in enumerate(graph.nodes) if n.op.name == "tanh")
    file, line, function, text = data["places"][data["lines"]["place"][row(data, tanh)["number"]]]
    assert file.endswith("test_explorer.py") and function == "model"
    assert text == "h = np.tanh(h)"
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1].strip() == text


def test_a_source_that_cannot_be_read_has_no_text():
    space = {"np": np}
    exec(compile("def f(x):\n    return np.sin(x)", "<nowhere>", "exec"), space)
    data = data_of(show.explore(wg.trace(space["f"])(wg.spec(3))))
    assert [place for place in data["places"] if place] == [["<nowhere>", 2, "f", ""]]


def test_groups_are_levels_and_scopes(graph):
    data = data_of(show.explore(wg.trace(wg.grad(model))(wg.spec(("n", 3)), wg.spec((3, 2)))))
    groups = data["steps"][0]["groups"]
    names = [(kind, data["texts"][name]) for kind, name, _ in groups]
    assert names[0][0] == "graph" and groups[0][2] == -1
    assert {("level", "function"), ("level", "first derivative"), ("scope", "encoder")} <= set(
        names
    )
    assert all(parent < number for number, (_, _, parent) in enumerate(groups))
    for i in range(len(data["steps"][0]["lines"])):
        said, path = row(data, i), []
        g = data["steps"][0]["home"][i]
        while groups[g][2] >= 0:
            path.insert(0, names[g])
            g = groups[g][2]
        if said["kind"] == "INPUT":
            assert path == []
        elif said["op"].get("kind"):
            assert path[0] == ("level", ("function", "first derivative")[said["level"]])
            assert "/".join(name for kind, name in path[1:]) == said["scope"]
    assert data["levels"] == {"0": "function", "1": "first derivative"}


def test_numbers_and_sizes_are_shown_inside_their_users():
    def f(x):
        return np.mean(x * 2.5) + np.array([1.0, 2.0])

    graph = wg.trace(wg.grad(lambda x: np.sum(f(x))))(wg.spec("n"))
    data = data_of(show.explore(graph))
    inline = {row(data, i)["inline"] for i in range(len(graph))}
    assert {"2.5", "n"} <= inline
    graph = wg.trace(lambda x: (x * np.array([1.0, 2.0]), wg.tensor(3.0)))(wg.spec(2))
    data = data_of(show.explore(graph))
    # Neither an array nor an output disappears into somebody else.
    assert {row(data, i)["inline"] for i in range(len(graph))} == {""}


def test_updates_and_variables_are_reported():
    count = wg.variable(np.zeros(2), "count")

    def step(x):
        count[...] = count + x
        return x * 2.0

    graph = wg.trace(step)(wg.spec(2))
    assert graph.updates
    data = data_of(show.explore(graph))
    (old, new), *_ = data["steps"][0]["updates"]
    assert graph.nodes[old] in graph.updates and graph.updates[graph.nodes[old]] is graph.nodes[new]
    assert row(data, old)["tone"] == "variable" and row(data, old)["name"] == "count"


def test_eager_lists_tell_their_values():
    x = wg.tensor([1.0, 2.0, np.nan], requires_grad=True)
    y = np.sum(x * x)
    data = data_of(show.explore(y, names={"x": x}))
    assert len(data["statistics"]) == len(data["steps"][0]["lines"])
    assert row(data, 0)["name"] == "x"
    assert data["statistics"]["0"]["nan"] == 1 and data["statistics"]["0"]["max"] == "2"


def test_values_by_node_by_tensor_and_in_order(graph):
    values = [np.full(3, float(i)) for i in range(len(graph))]
    by_order = data_of(show.explore(graph, values=values))["statistics"]
    by_node = data_of(show.explore(graph, values=dict(zip(graph.nodes, values, strict=True))))
    assert by_order == by_node["statistics"] and len(by_order) == len(graph)
    assert by_order["2"]["mean"] == "2"
    values[0] = None
    assert "0" not in data_of(show.explore(graph, values=values))["statistics"]


def test_values_that_do_not_fit_are_refused(graph):
    with pytest.raises(errors.ArgumentError, match=r"2 values for a graph of \d+ nodes"):
        show.explore(graph, values=[1.0, 2.0])
    with pytest.raises(errors.ArgumentError, match="a key of values= is 'x'"):
        show.explore(graph, values={"x": 1.0})
    with pytest.raises(errors.ArgumentError, match="values= is 3"):
        show.explore(graph, values=3)


# ---- statistics --------------------------------------------------------------------------------


def test_statistics_are_numpys():
    x = np.random.default_rng(3).normal(size=(40, 5)).astype("float32")
    found = show.statistics(x)
    for name, number in {"min": x.min(), "max": x.max(), "std": x.std(), "mean": x.mean()}.items():
        assert float(found[name]) == pytest.approx(float(number), rel=1e-5, abs=1e-7)
    counts, _ = np.histogram(x.astype(float), bins=len(found["histogram"]))
    assert np.abs(counts - found["histogram"]).sum() <= 2  # where a value meets an edge of a bin
    assert sum(found["histogram"]) == found["size"] == 200


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([np.inf, -np.inf, np.nan]), {"inf": 2, "nan": 1, "size": 3}),
        (np.zeros((0, 3)), {"value": "empty", "size": 0}),
        (
            np.array([1.7e308, -1.7e308]),
            {"min": "-1.7e+308", "mean": "0", "histogram": [1, 0, 0, 1]},
        ),
        (np.array([5e-324, 0.0]), {"zero": 1, "min": "0"}),
        (np.array([3 + 4j]), {"of": "moduli", "max": "5"}),
        (np.arange(5) > 2, {"value": "2 of 5 true", "zero": 3}),
        (np.int64(7), {"value": "7", "mean": "7"}),
        (2.5, {"value": "2.5"}),
        ((np.ones(2), np.zeros(2)), {"value": "([1 1], [0 0])"}),
        ("word", {"value": "word"}),
    ],
)
def test_statistics_of_odd_values(value, expected):
    found = show.statistics(value)
    assert {k: found[k] for k in expected} == expected
    json.dumps(found, allow_nan=False)


# ---- what the page is made of ------------------------------------------------------------------


class Checker(HTMLParser):
    """Balanced tags, and everything that could ask for something from elsewhere."""

    def __init__(self):
        super().__init__()
        self.stack, self.scripts, self.outside, self.ids, self.policy = [], [], [], [], ""

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.outside += [k for k in given if k in ("src", "href", "srcset", "style", "action")]
        self.outside += [k for k in given if k.startswith("on")]
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "script":
            self.scripts.append(given.get("type", ""))
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def check(page):
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert not checker.stack and not checker.outside
    assert checker.scripts == ["application/json", ""]
    assert len(set(checker.ids)) == len(checker.ids)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(", page)
    return checker


def test_the_page_is_well_formed_and_asks_for_nothing(graph, tmp_path):
    path = tmp_path / "graph.html"
    page = show.explore(graph, path, title="a < b & c")
    assert path.read_text(encoding="utf-8") == page
    checker = check(page)
    script = re.search(r"<script>(.*?)</script>", page, re.S).group(1)
    style = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
    for text in (script, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in checker.policy
    assert checker.policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in checker.policy and "<title>a &lt; b &amp; c</title>" in page
    assert all(
        f'getElementById("{name}")' not in script or name in checker.ids
        for name in re.findall(r'getElementById\("([\w-]+)"\)', script)
    )


def test_every_module_of_the_page_is_used_and_says_what_it_does():
    folder = Path(explorer.__file__).parent / "page"
    assert {p.stem for p in folder.glob("*.js")} == set(SCRIPTS.split())
    for path in folder.glob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("// ") and len(text.splitlines()) <= 450
        assert "innerHTML" not in text and "eval(" not in text and "</" not in text


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_names(name):
    x = wg.tensor(1.0, requires_grad=True)
    with wg.scope(name):
        y = wg.trace(lambda a: np.sin(a))(wg.spec(3))
    graph = wg.trace(lambda a: wg.input(name) * a)(wg.spec(()))
    for outputs, names in ((x * 2.0, {name: x}), (graph, None), (y, None)):
        page = show.explore(outputs, names=names, title=name.replace("\ud800", ""))
        check(page)
        data = data_of(page)
        if names or outputs is graph:
            assert name in [data["texts"][k] for k in data["lines"]["name"]]


def test_json_inside_a_page_has_no_way_out():
    for text in HOSTILE:
        written = as_json([text])
        assert not set(written) & set("<>&\u2028\u2029") and written.isascii()
        assert json.loads(written) == [text]
    with pytest.raises(ValueError, match="JSON"):
        as_json(float("nan"))


# ---- steps of a rewrite ------------------------------------------------------------------------


def pair():
    before = wg.trace(lambda x: np.sum(np.sin(x) * 1.0 + np.cos(x) ** 1.0))(wg.spec(3))
    after = wg.trace(lambda x: np.sum(np.sin(x) + np.cos(x)))(wg.spec(3))
    return before, after


def test_what_became_what():
    before, after = pair()
    made = change(before, before)
    assert made.before == list(range(len(before))) and made.rewired == []
    made = change(before, after)
    names = [after.nodes[k].op.name for k in range(len(after))]
    # The two programs stand on different lines of this file, so nothing is the same but the input.
    assert [made.before[names.index("input")]] == [0] and made.before.count(-1) == len(after) - 1


def test_lines_below_a_change_are_the_same_lines():
    from wengert._engine.core.graph_copies import rebuilt, with_args

    before, _ = pair()
    multiply = next(n for n in before.nodes if n.op.name == "multiply")
    place = rebuilt(before.nodes, {multiply: multiply.args[0]})
    after = before.with_nodes(place)
    made = change(before, after)
    assert -1 not in made.before
    gone = {before.nodes[i].op.name for i in set(range(len(before))) - set(made.before)}
    assert "multiply" in gone and "sum" not in gone
    add = next(k for k, n in enumerate(after.nodes) if n.op.name == "add")
    assert made.rewired == [add]
    assert with_args  # what rebuilt uses: new nodes that mean the same


def test_histories_of_pairs_and_recorded_ones():
    before, after = pair()
    pairs = [("as traced", before), ("simplified", after, "power by one")]
    data = data_of(show.explore(after, history=pairs))
    assert [s["title"] for s in data["steps"]] == ["as traced", "simplified"]
    assert data["steps"][1]["note"] == "power by one"
    assert len(data["steps"][1]["before"]) == len(after) and "before" not in data["steps"][0]
    one = types.SimpleNamespace(
        name="algebra", before=before, after=after, counts={"x**1": 1, "x*1": 2}
    )
    recorded = steps_of(after, types.SimpleNamespace(steps=[one]))
    assert [(s.title, s.graph, s.note) for s in recorded] == [
        ("original", before, ""),
        ("algebra", after, "x**1, x*1 ×2"),
    ]
    assert [s.title for s in steps_of(after, [("as traced", before)])] == ["as traced", "result"]
    with pytest.raises(errors.ArgumentError, match="an entry of history= is 3"):
        show.explore(after, history=[3])


def test_a_line_is_written_once_whatever_the_steps():
    before, _ = pair()
    once = data_of(show.explore(before))
    thrice = data_of(show.explore(before, history=[("a", before), ("b", before), ("c", before)]))
    assert thrice["lines"] == once["lines"] and len(thrice["steps"]) == 3


# ---- in the browser, in the notebook -----------------------------------------------------------


def test_showing_writes_a_file_and_asks_the_browser(graph, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    path = show.show_graph(graph, title="shown")
    assert "<title>shown</title>" in path.read_text(encoding="utf-8")
    assert show.show_graph(graph, tmp_path / "here.html") == tmp_path / "here.html"
    assert opened == [path.as_uri(), (tmp_path / "here.html").as_uri()]
    path.unlink()
    path.parent.rmdir()


def test_showing_in_a_notebook(graph, monkeypatch):
    shown = []
    shell = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=1))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=shown.append))
    monkeypatch.setattr("webbrowser.open", lambda uri: pytest.fail("a browser was asked"))
    assert show.show_graph(graph) is None
    assert shown[0]._repr_html_() == show.repr_html(graph)
    shell.get_ipython = lambda: None
    monkeypatch.setattr("webbrowser.open", lambda uri: None)
    path = show.show_graph(graph)
    path.unlink()
    path.parent.rmdir()


def test_the_frame_of_a_notebook(graph, monkeypatch):
    text = show.repr_html(graph, height=300)
    assert text.startswith("<iframe ") and 'sandbox="allow-scripts"' in text
    assert "height:300px" in text
    inside = html.unescape(re.search(r'srcdoc="([^"]*)"', text).group(1))
    assert inside == show.explore(graph)
    monkeypatch.setattr("wengert._engine.visualization.explorer.explorer.NOTEBOOK_LIMIT", 3)
    assert show.repr_html(graph).startswith("<pre>&lt;")


# ---- size --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unconverted")
def test_ten_thousand_lines_are_a_moderate_page(calls):
    def long(n):
        def f(x):
            y = x
            for _ in range(n):
                y = y + 0.01 * np.sin(y) * x
            return np.sum(y)

        return wg.trace(f)(wg.spec(3))

    graph = long(2500)
    assert len(graph) > 10_000
    assert len(show.explore(graph)) < 2_000_000
    assert calls(show.explore, long(400)) < 9 * calls(show.explore, long(50))
