"""Tables, DOT and SVG: what they say of each line, and that what they write is well-formed."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import wengert as wg
from wengert import errors, nn, show
from wengert._engine.visualization.node_labels import KIND_COLORS, ROLES, brief, graph_of, labels_of

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def example():
    x = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    steps = np.floor(x)
    y = np.sum(np.sin(x) * x + 0.5 * steps)
    return x, y


def test_roles_and_titles(example):
    x, y = example
    lines = labels_of(graph_of(y), {"x": x})
    roles = {line.title: line.role for line in lines}
    assert roles["x"] == "input"
    assert roles["0.5"] == "constant"
    assert roles["floor"] == "discrete"
    assert roles["sin"] == "operation"
    assert [line.title for line in lines if line.output] == ["sum"]
    assert next(line.detail for line in lines if line.title == "sin") == "float64[3]"


def test_a_table_reads_like_the_list(example):
    x, y = example
    text = show.table(y, names={"x": x})
    rows = text.splitlines()
    assert rows[0].split() == ["node", "operation", "operands", "shape", "value", "kind"]
    assert len(rows) == 1 + len(wg.Graph(y))
    assert re.search(r"^%0\s+x\s+float64\[3\]\s+\[1 2 3\]\s+INPUT$", text, re.M)
    assert "INPUT_DERIVED_NON_DIFF" in text and "constant" in text
    for i, row in enumerate(rows[1:]):
        assert row.startswith(f"%{i} ")
        assert all(int(k) < i for k in re.findall(r"%(\d+)", row)[1:])
    assert "value" not in show.table(y, values=False)
    assert "1 to 3" not in text and "-0.3" in show.table(np.sum(-0.1 * np.stack([x, x])))


def test_a_model_names_its_parameters():
    model = nn.Sequential(nn.Linear(3, 2, rng=0), nn.ReLU())
    y = model(np.ones((4, 3)))
    assert {"0.weight", "0.bias"} <= {line.title for line in labels_of(graph_of(y), model)}
    with pytest.raises(errors.ArgumentError, match="names= is a list"):
        show.table(y, names=["weight"])


def test_dot_has_a_node_for_each_line_and_an_edge_for_each_operand(example):
    _, y = example
    text, graph = show.to_dot(y), wg.Graph(y)
    assert text.startswith("digraph") and text.count("{") == text.count("}") == 1
    assert len(re.findall(r"^  n\d+ \[", text, re.M)) == len(graph)
    edges = re.findall(r"^  n(\d+) -> n(\d+);", text, re.M)
    assert sorted((int(a), int(b)) for a, b in edges) == sorted(
        (a, b) for b in range(len(graph)) for a in graph.operands(b)
    )


def test_svg_is_well_formed_and_complete(example, tmp_path):
    x, y = example
    path = tmp_path / "graph.svg"
    text = show.to_svg(y, path, names={"x": x}, title="a < b & c")
    assert path.read_text(encoding="utf-8") == text
    root = ET.fromstring(text)
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert "a < b & c" in words and "x" in words and "float64[3]" in words
    assert len(list(root.iter(f"{SVG}title"))) == len(wg.Graph(y))
    for kind in ("input", "constant", "discrete", "elementwise", "reduction"):
        assert kind in words  # the legend


def test_a_name_that_is_markup_is_escaped():
    x = wg.tensor(1.0, requires_grad=True)
    ET.fromstring(show.to_svg(x * 2.0, names={'<"&>': x}))
    assert r"label=\"" not in show.to_dot(x, names={'"': x}).replace(r"\"", "")


def test_repeated_operands_and_operand_order_are_reported():
    x = wg.tensor(2.0, requires_grad=True)
    assert "2×" in show.to_svg(x * x)
    assert "2×" not in show.to_svg(np.sin(x) * x)


def test_lists_graphs_and_leaves_can_be_drawn(example):
    x, y = example
    for outputs in ([y, np.sin(x)], wg.Graph(y), x, wg.tensor(1.0), np.linalg.norm(x)):
        ET.fromstring(show.to_svg(outputs))
        assert show.table(outputs) and show.to_dot(outputs)


def test_a_recorded_gradient_can_be_drawn(example):
    x, y = example
    y.backward(create_graph=True)
    text = show.to_svg(x.grad, names={"x": x})
    assert "cos" in text and ">x<" in text


def test_operations_with_several_outputs():
    x = wg.tensor(np.diag([1.0, 2.0]), requires_grad=True)
    _, logdet = np.linalg.slogdet(x)
    assert "float64[]" in show.to_svg(logdet)


def test_an_illegible_graph_is_refused():
    x = wg.tensor(1.0, requires_grad=True)
    for _ in range(401):
        x = np.sin(x)
    with pytest.raises(errors.ArgumentError, match="402 nodes"):
        show.to_svg(x)
    assert show.table(x).count("\n") == 402


def test_values_in_a_few_characters():
    assert brief(np.arange(5)) == "0 to 4"
    assert brief(np.array([True, False, True, True])) == "3 of 4 true"
    assert brief(np.zeros(0)) == "empty"
    assert brief(np.array([3 + 4j, 0, 0, 0])) == "|z| up to 5"
    assert brief((1.0, np.float64(2))) == "(1, 2)"
    assert brief(None) == "-"


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize(("name", "colors"), [*ROLES.items(), *KIND_COLORS.items()])
def test_text_is_legible_on_its_fill(name, colors):
    fill, _, ink = map(luminance, colors)
    contrast = (max(fill, ink) + 0.05) / (min(fill, ink) + 0.05)
    assert contrast > (3 if name == "constant" else 4.5)


def test_the_picture_of_a_training(tmp_path):
    training = pytest.importorskip(
        "wengert._engine.visualization.training_plots", reason="needs matplotlib (extra: show)"
    )
    losses = np.exp(-np.linspace(0, 3, 40))
    rng = np.random.default_rng(0)
    for count in (0, 3, 7, 40):
        figure = training.training_picture(
            losses,
            [0.8, 0.9, 0.95, 0.97],
            rng.random((count, 8, 8)),
            [1] * count,
            [7] * count,
            path=tmp_path / f"{count}.png",
            title="a training",
        )
        assert (tmp_path / f"{count}.png").stat().st_size > 10_000
        heading = figure.subfigs[1].get_suptitle()
        assert heading == {0: "nothing misread", 40: "18 of 40 misread"}.get(
            count, f"all {count} misread"
        )
