"""Attention, positions and Transformers: masks, symmetries, modes, errors; training of a GPT."""

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim
from wengert.errors import ArgumentError, DtypeError, ShapeError
from wengert.nn import functional as F

WAYS = [pytest.param(lambda f: f, id="eager"), pytest.param(wg.jit, id="compiled")]
attend = F.scaled_dot_product_attention


def plain(x):
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x)


def by_hand(q, k, v, allowed):
    """The softmax of each row over allowed sources."""
    out = np.zeros((len(q), v.shape[-1]))
    for i, row in enumerate(q):
        which = np.flatnonzero(allowed[i])
        if len(which):
            e = np.exp(k[which] @ row / np.sqrt(len(row)))
            out[i] = e @ v[which] / e.sum()
    return out


@pytest.mark.parametrize("way", WAYS)
def test_masks_choose_and_rows_of_nothing_are_zero(way, rng):
    q, k, v = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    allowed = rng.random((4, 5)) < 0.6
    allowed[1], allowed[2] = False, True
    k[:, :] = np.where(allowed.any(axis=0)[:, None], k, np.nan)
    wanted = by_hand(q, k, v, allowed)
    for mask in (allowed, np.where(allowed, 0.0, -np.inf)):
        found = way(lambda q, k, v, m=mask: attend(q, k, v, m))(q, k, v)
        np.testing.assert_allclose(plain(found), wanted, rtol=1e-12)
        f = lambda q, k, v, m=mask: np.sum(np.sin(attend(q, k, v, m)))  # noqa: E731
        bars = way(wg.grad(f, (0, 1, 2)))(q, k, v)
        assert all(np.all(np.isfinite(b)) for b in bars)
        assert np.all(bars[0][1] == 0.0) and np.all(bars[0][0] != 0.0)
        twice = way(wg.hessian(f))(q, k, v)
        assert np.all(np.isfinite(twice)) and np.all(twice[1] == 0.0)
    bias = np.where(allowed, rng.normal(size=(4, 5)), -np.inf)
    slope = way(wg.grad(lambda m: np.sum(np.sin(attend(q, k, v, m)))))(bias)
    assert np.all(slope[~allowed] == 0.0) and np.all(slope[0][allowed[0]] != 0.0)


@pytest.mark.parametrize("way", WAYS)
def test_causal_is_blind_to_what_comes(way, rng):
    x = rng.normal(size=(2, 6, 4))
    run = way(lambda x: attend(x, x, x, is_causal=True))
    later = x.copy()
    later[:, 3:] += 1.0
    np.testing.assert_array_equal(plain(run(x))[:, :3], plain(run(later))[:, :3])
    mask = np.tri(6, dtype=bool)
    np.testing.assert_allclose(plain(run(x)), plain(attend(x, x, x, mask)), rtol=1e-14)


def test_derivatives_float32_groups_and_rows(rng):
    q, k, v = (rng.normal(size=s) for s in ((2, 2, 2), (1, 3, 2), (1, 3, 1)))

    def f(q, k, v):
        return attend(q, k, v, is_causal=True, enable_gqa=True)

    wg.check_grads(f, (q, k, v), order=2, entries=False)
    assert f(*(x.astype("float32") for x in (q, k, v))).dtype == "float32"
    spread = [np.repeat(x, 2, axis=0) for x in (k, v)]
    np.testing.assert_allclose(f(q, k, v), attend(q, *spread, is_causal=True), rtol=1e-14)
    rows = wg.vmap(lambda q, k, v: attend(q, k, v, is_causal=True))(q, *spread)
    np.testing.assert_allclose(rows, f(q, k, v), rtol=1e-14)


def test_one_graph_for_all_sizes(rng):
    layer = nn.MultiheadAttention(4, 2, rng=0)
    graph = wg.trace(lambda x, p: layer(x, x, x, p, is_causal=True)[0])(
        wg.spec(("steps", "batch", 4)), wg.spec(("batch", "steps"), bool)
    )
    for steps, batch in ((5, 2), (1, 3)):
        x, padding = rng.normal(size=(steps, batch, 4)), rng.random((batch, steps)) < 0.4
        wanted = layer(x, x, x, padding, is_causal=True)[0]
        np.testing.assert_allclose(graph(x, padding), plain(wanted), rtol=1e-12, atol=1e-15)


def test_dropped_weights_differ_and_keep_the_mean():
    layer = nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True, rng=0)
    x = np.ones((1, 400, 4))
    run = wg.jit(lambda x: layer(x, x, x)[1])
    first, second = plain(run(x)), plain(run(x))
    assert np.any(first != second)
    assert abs(np.mean(first) * 400 - 1.0) < 0.02
    layer.eval()
    np.testing.assert_allclose(plain(run(x)), 1 / 400, rtol=1e-12)


def test_refusals_of_attention():
    x = np.zeros((2, 3, 4))
    layer = nn.MultiheadAttention(4, 2, rng=0)
    with pytest.raises(ArgumentError, match="multiple of num_heads"):
        nn.MultiheadAttention(5, 2)
    with pytest.raises(ShapeError, match=r"of widths \(4, 4, 4\)"):
        layer(x, x[..., :2], x)
    with pytest.raises(ShapeError, match="attn_mask must have shape"):
        layer(x, x, x, attn_mask=np.zeros((3, 2), bool))
    with pytest.raises(DtypeError, match="int64"):
        layer(x, x, x, attn_mask=np.zeros((2, 2), int))
    with pytest.raises(ShapeError, match="sources, length"):
        attend(x, x[:, :, :2], x)
    with pytest.raises(ShapeError, match="heads of queries"):
        attend(np.zeros((3, 2, 4)), np.zeros((2, 2, 4)), np.zeros((2, 2, 4)), enable_gqa=True)


# ---- positions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_products_know_only_distances(interleaved, rng):
    q, k = rng.normal(size=(2, 6))
    rows = [rotated(np.tile(x, (9, 1)), interleaved) for x in (q, k)]
    products = rows[0] @ rows[1].T
    for d in range(-8, 9):
        line = np.diagonal(products, d)
        np.testing.assert_allclose(line, line[0], rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(rows[0], axis=1), np.linalg.norm(q), rtol=1e-14)
    part = nn.rotary_embedding(np.tile(q, (2, 1)), np.array([5, 8]), interleaved=interleaved)
    np.testing.assert_allclose(part, rows[0][[5, 8]], rtol=1e-14)
    wg.check_grads(
        lambda x: nn.rotary_embedding(x, interleaved=interleaved), (rows[0][:2],), entries=False
    )


def rotated(x, interleaved):
    return nn.rotary_embedding(x, interleaved=interleaved)


def test_rotary_turns_by_the_angle_of_its_formula():
    x = np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0]])
    c, s = np.cos([1.0, 0.01]), np.sin([1.0, 0.01])
    halves = [1 * c[0] - 3 * s[0], 2 * c[1] - 4 * s[1], 1 * s[0] + 3 * c[0], 2 * s[1] + 4 * c[1]]
    pairs = [1 * c[0] - 2 * s[0], 1 * s[0] + 2 * c[0], 3 * c[1] - 4 * s[1], 3 * s[1] + 4 * c[1]]
    np.testing.assert_allclose(nn.rotary_embedding(x)[1], halves, rtol=1e-14)
    np.testing.assert_allclose(nn.RotaryEmbedding(4, interleaved=True)(x)[1], pairs, rtol=1e-14)


def test_positions_are_added():
    table = nn.sinusoidal_positions(7, 5)
    k = 3 / 1e4 ** np.array([0, 0, 0.4, 0.4, 0.8])
    wanted = np.where(np.arange(5) % 2 == 0, np.sin(k), np.cos(k))
    np.testing.assert_allclose(table[3], wanted, rtol=1e-14)
    x = np.zeros((6, 2, 5))
    np.testing.assert_array_equal(plain(nn.PositionalEncoding(5)(x))[:, 1], table[:6])
    learnt = nn.LearnedPositions(7, 5, batch_first=True, rng=0)
    found = plain(learnt(np.zeros((2, 6, 5))))
    np.testing.assert_array_equal(found[1], plain(learnt.weight)[:6])
    with pytest.raises(ShapeError, match="larger max_len"):
        learnt(np.zeros((1, 8, 5)))
    with pytest.raises(ShapeError, match="expected sequences"):
        learnt(np.zeros((1, 6, 4)))
    with pytest.raises(ShapeError, match="even width"):
        nn.rotary_embedding(np.zeros((2, 3)))
    with pytest.raises(ArgumentError, match="must be even"):
        nn.RotaryEmbedding(3)


# ---- Transformers ------------------------------------------------------------------------------


def test_copies_of_a_layer_begin_equal_and_drop_independently(rng):
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, rng=0)
    model = nn.TransformerEncoder(layer, 2)
    first, second = model.layers
    np.testing.assert_array_equal(plain(first.linear1.weight), plain(second.linear1.weight))
    x = rng.normal(size=(3, 1, 4))
    assert np.any(plain(first(x)) != plain(second(x)))
    assert np.any(plain(first.eval()(x)) == plain(second.eval()(x)))
    with pytest.raises(ArgumentError, match="number of copies"):
        nn.TransformerEncoder(layer)
    with pytest.raises(ArgumentError, match="Omit num_layers"):
        nn.TransformerEncoder([layer], 3)
    with pytest.raises(ArgumentError, match="got 'sine'"):
        nn.TransformerEncoderLayer(4, 2, activation="sine")


@pytest.mark.slow  # docs/learning.md trains one, too
def test_a_small_gpt_learns():
    text = "abracadabra! " * 12
    letters = sorted(set(text))
    codes = np.array([letters.index(c) for c in text])
    rng, width = np.random.default_rng(0), 16
    embedding = nn.Embedding(len(letters), width, rng=rng)
    positions = nn.LearnedPositions(13, width, batch_first=True, rng=rng)
    layers = [
        nn.TransformerEncoderLayer(
            width, 2, 32, 0.05, "gelu", batch_first=True, norm_first=True, rng=rng
        )
    ]
    body, head = nn.TransformerEncoder(layers), nn.Linear(width, len(letters), rng=rng)
    parts = (embedding, positions, body, head)
    optimizer = optim.AdamW([p for m in parts for p in m.parameters()], lr=0.01)
    rows = np.stack([codes[k : k + 14] for k in range(0, 130, 13)])

    @wg.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(head(body(positions(embedding(x)), is_causal=True)), y)
        loss.backward()
        optimizer.step()
        return loss

    batch = rows[:, :-1], rows[:, 1:]  # non-contiguous, as in user code
    losses = [step(*batch).item() for _ in range(60)]
    assert losses[0] > 1.5 and losses[-1] < 0.15
