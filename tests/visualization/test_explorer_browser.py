"""The page of a graph in a real browser without a window: what a reader does, and what must never
happen, which is an error on the console, a request to the network, or a name that runs."""

import numpy as np
import pytest
from tests import browsers

import wengert as wg
from wengert import show

playwright = browsers.driver(allow_module_level=True)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=browsers.executable(), args=["--no-sandbox"]
        )
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Opens a page; at the end nothing may have been complained about or asked for."""
    opened, troubles = [], []

    def go(text, width=1200, height=800, ready=True, **options):
        path = tmp_path / f"{len(opened)}.html"
        path.write_text(text, encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": height}, **options)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(f"a dialog: {dialog.message}"))
        page.on(
            "request", lambda r: r.url in (path.as_uri(), "about:srcdoc") or troubles.append(r.url)
        )
        opened.append(page)
        page.goto(path.as_uri())
        if ready:
            settle(page)
        return page

    yield go
    for page in opened:
        page.close()
    assert not troubles


def settle(page):
    """Wait until nothing moves."""
    page.wait_for_function("() => !wengert.asked && !wengert.camera.glide")


def model(x, w):
    with wg.scope("encoder"):
        with wg.scope("affine", author="ada"):
            h = x @ w
        with wg.scope("activation"):
            h = np.tanh(h)
    with wg.scope("loss"):
        return np.sum(np.exp(h) * h) * 2.0


@pytest.fixture(scope="module")
def graph():
    return wg.trace(wg.grad(model))(wg.spec(("n", 3)), wg.spec((3, 2)))


def click_box(page, box):
    """Click where a box is drawn: a line in its middle, an open group on its header."""
    x, y = page.evaluate(
        """(id) => {
            const b = wengert.scene.byBox.get(id);
            return wengert.camera.toScreen(b.x + b.w / 2, b.y + (b.open ? 8 : b.h / 2));
        }""",
        box,
    )
    page.locator("#picture").click(position={"x": x, "y": y})
    settle(page)


def boxes(page):
    return page.evaluate("wengert.scene.boxes.map((b) => b.id)")


def group_box(page, *names):
    """The box of a group, by the names from the outside in."""
    kinds = ["level"] + ["scope"] * (len(names) - 1)
    path = "".join(f"/{kind}:{name}" for kind, name in zip(kinds, names, strict=True))
    found = page.evaluate("(path) => wengert.model.groups.findIndex((g) => g.path === path)", path)
    assert found > 0
    return page.evaluate("wengert.model.n") + found


def pixels(page):
    return page.locator("#picture").screenshot()


def line_of(graph, op, level=0):
    return next(i for i, n in enumerate(graph.nodes) if n.op.name == op and n.level == level)


# ---- what a reader does ------------------------------------------------------------------------


def test_a_click_on_a_line_shows_what_it_is(visit, graph):
    values = [np.array([1.0, 2.0, np.nan]) for _ in graph.nodes]
    page = visit(show.explore(graph, values=values))
    page.click("#open-all")
    settle(page)
    click_box(page, line_of(graph, "exp"))
    panel = page.inner_text("#details")
    for words in (
        *("exp", "e**x", "float64[n,2]", "INPUT_DERIVED", "elementwise", "function", "loss"),
        *("test_explorer_browser.py:", "return np.sum(np.exp(h) * h) * 2.0", "ancestors"),
        *("1 to 2", "⚠ 1 nan"),
    ):
        assert words in panel
    assert page.locator("#details svg.histogram rect").count() >= 4
    click_box(page, line_of(graph, "matmul"))
    assert "author='ada'" in page.inner_text("#details")
    link = page.locator("#details button.link", has_text="tanh").first
    link.click()
    settle(page)
    assert page.inner_text("#details h2") == "tanh"
    assert page.inner_text("#said").startswith(f"%{line_of(graph, 'tanh')} = tanh")


def test_search_finds_steps_and_opens(visit, graph):
    page = visit(show.explore(graph))
    page.click("#close-all")
    settle(page)
    hits = [i for i, n in enumerate(graph.nodes) if n.op.name == "tanh"]
    page.keyboard.press("/")
    page.keyboard.type("tanh affine nothing")
    assert page.inner_text("#found") == "none found"
    page.fill("#search", "op:TANH encoder/activation")
    assert page.inner_text("#found") == f"{len(hits)} found"
    assert hits[0] not in boxes(page)
    page.keyboard.press("Enter")
    settle(page)
    assert hits[0] in boxes(page) and page.evaluate("wengert.selected") == hits[0]
    page.fill("#search", "test_explorer_browser.py:")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.inner_text("#found").startswith("2 of ")
    page.fill("#search", "%3")
    assert page.inner_text("#found") == "1 found"
    page.keyboard.press("Escape")  # leaves the field
    page.keyboard.press("Escape")  # clears it
    assert page.input_value("#search") == "" and page.inner_text("#found") == ""


def test_groups_open_and_close(visit, graph):
    page = visit(show.explore(graph))
    page.click("#close-all")
    settle(page)
    function, inputs = group_box(page, "function"), 2
    derivative = group_box(page, "first derivative")
    assert sorted(boxes(page)) == sorted(
        [*range(inputs), function, derivative, page.evaluate("wengert.model.n")]
    )
    click_box(page, function)
    encoder = group_box(page, "function", "encoder")
    assert encoder in boxes(page) and "Gradient level" in page.inner_text("#details")
    click_box(page, encoder)
    page.keyboard.press("Enter")  # closes what is selected
    assert group_box(page, "function", "encoder", "affine") not in boxes(page)
    click_box(page, function)
    assert encoder not in boxes(page)
    page.click("#open-all")
    lines = [i for i in boxes(page) if i < len(graph)]
    assert set(range(inputs)) < set(lines)
    before = len(lines)
    page.keyboard.press("c")
    assert len([i for i in boxes(page) if i < len(graph)]) > before  # constants have boxes now


def test_levels_are_switched(visit, graph):
    page = visit(show.explore(graph))
    page.click("#open-all")
    levels = [n.level for n in graph.nodes]
    page.uncheck("#levels input[value='1']")
    assert {levels[i] for i in boxes(page) if i < len(graph)} == {0}
    page.uncheck("#levels input[value='0']")
    assert len(boxes(page)) == 1
    page.check("#levels input[value='1']")
    assert {levels[i] for i in boxes(page) if i < len(graph)} == {1}


def test_zooming_and_moving(visit, graph):
    page = visit(show.explore(graph))
    scale = "wengert.camera.k"
    first, picture = page.evaluate(scale), pixels(page)
    page.mouse.move(300, 400)
    under = "wengert.camera.toDrawing(300, 400 - wengert.canvas.getBoundingClientRect().top)"
    spot = page.evaluate(under)
    page.mouse.wheel(0, -300)
    page.wait_for_function(f"{scale} > {first} * 1.3")
    assert page.evaluate(under) == pytest.approx(spot, abs=2)
    assert pixels(page) != picture
    page.mouse.down()
    page.mouse.move(350, 420, steps=4)
    page.mouse.up()
    moved = page.evaluate("([x, y]) => wengert.camera.toScreen(x, y)", spot)
    assert moved[0] == pytest.approx(350, abs=2)
    assert page.evaluate("wengert.selected") == -1  # a drag is not a click
    page.focus("#picture")
    for key in ("+", "+", "-", "f"):
        page.keyboard.press(key)
    settle(page)
    assert page.evaluate(scale) == pytest.approx(first)
    settle(page)
    assert pixels(page) != b"" and page.is_hidden("#minimap")
    page.keyboard.press("+")
    page.keyboard.press("+")
    settle(page)
    page.locator("#minimap").click(position={"x": 10, "y": 10})
    assert page.evaluate("wengert.camera.x") < 200


def test_the_arrows_walk_along_the_graph(visit, graph):
    page = visit(show.explore(graph))
    page.click("#open-all")
    tanh = line_of(graph, "tanh")
    click_box(page, tanh)
    page.keyboard.press("ArrowUp")
    assert page.evaluate("wengert.selected") in graph.operands(tanh)
    page.keyboard.press("ArrowDown")
    assert page.evaluate("wengert.selected") in graph.consumers(line_of(graph, "matmul"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    assert page.evaluate("wengert.selected") == -1
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    assert page.is_hidden("#help")


def test_ancestors_and_descendants(visit, graph):
    page = visit(show.explore(graph))
    page.click("#open-all")
    click_box(page, line_of(graph, "tanh"))
    page.keyboard.press("a")
    shown = set(page.evaluate("[...wengert.emphasis]"))
    assert shown == {line_of(graph, "tanh"), line_of(graph, "matmul"), 0, 1}
    page.click("#details [data-reach='descendants']")
    assert line_of(graph, "exp") in page.evaluate("[...wengert.emphasis]")
    assert 0 not in page.evaluate("[...wengert.emphasis]")
    page.keyboard.press("d")
    assert page.evaluate("wengert.emphasis") is None


def test_the_list_of_lines(visit, graph):
    page = visit(show.explore(graph))
    page.click("#tab-lines")
    rows = page.locator("#lines .row")
    assert rows.count() >= 10
    assert page.inner_text("#lines .row >> nth=0").split() == "%0 = input x float64[n,3]".split()
    rows.nth(5).click()
    assert page.evaluate("wengert.selected") == 5
    assert page.locator("#lines .chosen").count() == 1


def test_steps_of_a_rewrite(visit):
    def before(x):
        return np.sum(np.sin(x) * 1.0 + 0.0)

    first = wg.trace(before)(wg.spec(3))
    multiply = next(n for n in first.nodes if n.op.name == "multiply")
    add = next(n for n in first.nodes if n.op.name == "add")
    total = first.outputs[0]
    from wengert._engine.core.graph_copies import rebuilt

    second = first.with_nodes(rebuilt(first.nodes, {multiply: multiply.args[0]}))
    new_add = next(n for n in second.nodes if n.op.name == "add")
    third = second.with_nodes(rebuilt(second.nodes, {new_add: new_add.args[0]}))
    history = [("as traced", first), ("x * 1", second, "multiply_by_one"), ("x + 0", third)]
    page = visit(show.explore(third, history=history))
    assert page.inner_text("#step-title") == "3/3 x + 0"
    page.keyboard.press("[")
    assert "multiply_by_one" in page.inner_text("#steps")
    assert "→" in page.inner_text("#step-words") and "to go next" in page.inner_text("#step-words")
    gone = page.evaluate("[...wengert.model.marks].filter((m) => m[1] === 'gone').map((m) => m[0])")
    assert second.index(new_add) in gone
    page.evaluate(f"wengert.go({second.index(new_add.args[0])})")
    assert "sin" in page.inner_text("#details h2")
    page.click("#step-back")
    assert "sin" in page.inner_text("#details h2")  # the selection goes along
    assert first.index(multiply) in page.evaluate("[...wengert.model.marks.keys()]")
    assert page.is_disabled("#step-back") and first.index(add) < first.index(total)
    page.focus("#step-slider")
    page.keyboard.press("End")
    assert page.inner_text("#step-title").startswith("3/3")


def test_updates_effects_and_values_of_an_eager_list(visit):
    count = wg.variable(np.zeros(2), "count")

    def step(x):
        count[...] = count + x
        return x * 2.0

    page = visit(show.explore(wg.trace(step)(wg.spec(2))))
    assert page.evaluate("wengert.scene.wires.filter((w) => w.dashed).length") == 1
    assert "variable" in page.inner_text("#legend-rows")
    waiting = wg.trace(lambda a: wg.after(np.sin(a), np.cos(a)))(wg.spec(2))
    page = visit(show.explore(waiting))
    dashed = page.evaluate("wengert.scene.wires.filter((w) => w.dashed).map((w) => w.edges[0].u)")
    assert dashed == [line_of(waiting, "cos")]
    x = wg.tensor(np.linspace(0.0, 1.0, 50), requires_grad=True)
    page = visit(show.explore(np.sum(x * x), names={"x": x}))
    click_box(page, 0)
    assert "0 to 1" in page.inner_text("#details")


# ---- what must never happen --------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "</script><script>window.broken = 1</script>",
        "<img src=x onerror='window.broken = 1'>",
        "\u2028'];window.broken=1;//{{script}}",
    ],
)
def test_a_name_cannot_run(visit, name):
    with wg.scope(name):
        x = wg.input(name)
    graph = wg.trace(lambda a: x * np.sin(a))(wg.spec(()))
    page = visit(show.explore(graph, title=name, history=[(name, graph, name), (name, graph)]))
    page.evaluate("wengert.go(0)")
    page.click("#tab-lines")
    page.fill("#search", name)
    assert page.evaluate("window.broken") is None
    assert page.title().split() == name.split()
    assert page.evaluate("document.scripts.length") == 2


def test_the_policy_stops_what_is_not_the_pages_own(browser, graph, tmp_path):
    text = show.explore(graph).replace("</body>", "<script>window.broken = 1</script></body>")
    (tmp_path / "x.html").write_text(text, encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "x.html").as_uri())
    assert page.evaluate("window.broken") is None
    assert page.evaluate("wengert.model.n") == len(graph)
    page.close()


def test_in_the_dark_on_a_small_screen(visit, graph):
    page = visit(show.explore(graph), width=420, height=600, color_scheme="dark")
    assert page.evaluate("wengert.theme.dark") is True
    assert page.is_hidden("aside")
    click_box(page, 0)
    assert page.is_visible("aside")


def test_in_a_notebook(visit, graph):
    cell = f"<!doctype html><p>A cell</p>{show.repr_html(graph)}"
    page = visit(cell, ready=False)
    inside = page.frame_locator("iframe")
    inside.locator("#picture").click(position={"x": 5, "y": 5})
    assert inside.locator("h1").inner_text() == graph.name
    inside.locator("#tab-lines").click()
    assert inside.locator("#lines .row").count() >= 10
    frame = page.frames[1]
    assert frame.evaluate("wengert.scene.boxes.length") > 3
    assert (
        frame.evaluate("() => { try { return parent.document.title } catch { return 'kept out' } }")
        == "kept out"
    )


def test_boxes_never_overlap_and_stay_inside_their_group(visit, graph):
    page = visit(show.explore(graph))
    faults = """() => {
        const { scene, model } = wengert, bad = [];
        const closed = scene.boxes.filter((b) => !b.open);
        closed.forEach((a, i) => closed.slice(i + 1).forEach((b) => {
            const apart = a.x >= b.x + b.w || b.x >= a.x + a.w
                || a.y >= b.y + b.h || b.y >= a.y + a.h;
            if (!apart) bad.push([a.id, b.id]);
        }));
        for (const box of scene.boxes) {
            const { id, x, y, w, h } = box;
            const g = id >= model.n ? model.groups[id - model.n].parent : model.home[id];
            const f = g < 0 ? null : scene.byBox.get(model.n + g);
            if (!f) continue;
            const inside = x >= f.x && y >= f.y && x + w <= f.x + f.w + 0.01
                && y + h <= f.y + f.h + 0.01;
            if (!inside) bad.push([id, "outside"]);
        }
        for (const { points, edges } of scene.wires) {
            if (points.some((p) => !Number.isFinite(p.x + p.y))) bad.push("a point");
            if (!edges.length) bad.push("no edge");
        }
        return bad;
    }"""
    assert page.evaluate(faults) == []
    page.click("#open-all")
    assert page.evaluate(faults) == []
    for name in ("encoder", "loss", "function"):
        page.evaluate(
            "(name) => wengert.toggle(wengert.model.groups.find((g) => g.name === name))", name
        )
        assert page.evaluate(faults) == []


@pytest.mark.slow
def test_every_edge_is_drawn_or_inside_a_closed_group(visit, graph):
    page = visit(show.explore(graph))
    page.click("#open-all")
    page.keyboard.press("c")
    drawn = page.evaluate("wengert.scene.wires.flatMap((w) => w.edges.flatMap((e) => e.lines))")
    assert {tuple(pair) for pair in drawn} == {
        (a, b) for b in range(len(graph)) for a in graph.operands(b)
    }


@pytest.mark.slow
@pytest.mark.usefixtures("unconverted")  # so that the loop is unrolled
def test_ten_thousand_lines_stay_usable(visit):
    def f(x):
        y = x
        for _ in range(2500):
            y = y + 0.01 * np.sin(y) * x
        return np.sum(y)

    page = visit(show.explore(wg.trace(f)(wg.spec(3))))
    opened = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert opened < 3000
    frames = """(k) => {
        const { camera } = wengert;
        camera.zoom(k / camera.k);
        wengert.drawNow();
        const since = performance.now();
        for (let i = 0; i < 20; i++) { camera.pan(5, 3); wengert.drawNow(); }
        return (performance.now() - since) / 20;
    }"""
    assert page.evaluate(frames, 1.0) < 50
    page.evaluate("() => { wengert.tree.openAll(wengert.model); wengert.rebuild(); }")
    assert page.evaluate("wengert.scene.boxes.length") > 10_000
    for scale in (0.01, 0.1, 0.3, 1.0):
        assert page.evaluate(frames, scale) < 50
