"""Operators on images: Resize, sampling at points, NonMaxSuppression.

    place    the position of each output along the axis of inputs
    taps     the neighbors of the positions, and their weights

Resize is separable: along each axis an output is a weighted sum of neighboring inputs, whose
positions and weights are known when the graph is built.

The number of selected boxes depends on values, so boxes and scores must be known during the import.
For a file whose last operator this is, `non_max_suppression` selects from the results of the part
before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops.casts import astype
from wengert.nn.functional import affine_grid, grid_sample

from .registry import NodeView, as_value, imports


class ResizedAxis(NamedTuple):
    """An axis of length n that is resized to length m; `scale` is their ratio, not rounded."""

    n: int
    m: int
    scale: float
    roi: tuple[float, float]


# ---- positions ---------------------------------------------------------------------------------


def place(axis: ResizedAxis, mode: str) -> Any:
    """The positions of the outputs along the axis of inputs."""
    n, m, scale, (low, high) = axis
    i = np.arange(m, dtype=float)
    length = scale * n
    if mode == "align_corners":
        return i * 0.0 if length == 1 else i * (n - 1) / (length - 1)
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_crop_and_resize":
        inside = (high - low) * (n - 1)
        return low * (n - 1) + (i * 0.0 + inside / 2 if length == 1 else i * inside / (length - 1))
    if mode == "pytorch_half_pixel" and length == 1:
        return i * 0.0 - 0.5
    shift = n / 2 * (1 - m / length) if mode == "half_pixel_symmetric" else 0.0
    return shift + (i + 0.5) / scale - 0.5


def _nearest(position: Any, how: str) -> tuple[Any, Any]:
    first = np.floor(position)
    if how == "floor":
        chosen = first
    elif how == "ceil":
        chosen = np.ceil(position)
    elif how == "round_prefer_ceil":
        chosen = np.floor(position + 0.5)
    else:
        chosen = np.ceil(position - 0.5)
    return chosen[:, None], np.ones((len(position), 1))


def _triangle(t: Any) -> Any:
    return np.maximum(0.0, 1.0 - np.abs(t))


def _cubic(a: float) -> Callable[[Any], Any]:
    """Keys' kernel with parameter a."""

    def kernel(t: Any) -> Any:
        t = np.abs(t)
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        return np.where(t <= 1, near, np.where(t < 2, far, 0.0))

    return kernel


def taps(n: NodeView, axis: ResizedAxis, position: Any) -> tuple[Any, Any]:
    """The positions of neighbors, which may be outside, and their weights."""
    mode = n.get("mode", "nearest")
    if mode == "nearest":
        return _nearest(position, n.get("nearest_mode", "round_prefer_floor"))
    kernel, reach = (
        (_triangle, 1) if mode == "linear" else (_cubic(n.get("cubic_coeff_a", -0.75)), 2)
    )
    stretch = min(axis.scale, 1.0) if n.get("antialias", 0) else 1.0
    start = math.floor(-reach / stretch) + 1
    n.need((axis.m, 2 - 2 * start), np.float64)
    first = np.floor(position)[:, None]
    places = first + np.arange(start, 2 - start)
    weights = kernel((places - position[:, None]) * stretch)
    if n.get("exclude_outside", 0):
        weights = np.where((places >= 0) & (places < axis.n), weights, 0.0)
    if n.get("exclude_outside", 0) or n.get("antialias", 0):
        weights = weights / np.sum(weights, axis=1, keepdims=True)
    return places, weights


def _along(n: NodeView, x: Any, k: int, axis: ResizedAxis) -> Any:
    """x resized along its axis k."""
    mode = n.get("coordinate_transformation_mode", "half_pixel")
    n.need((axis.m,), np.float64)
    position = place(axis, mode)
    places, weights = taps(n, axis, position)
    places = np.clip(places, 0, axis.n - 1).astype(np.int64)
    shape = (-1,) + (1,) * (len(x.shape) - k - 1)
    dtype = x.dtype if x.dtype.kind == "f" else np.dtype(float)
    out: Any = None
    for j in range(places.shape[1]):
        part = np.take(x, places[:, j], axis=k)
        if places.shape[1] > 1:
            part = part * weights[:, j].astype(dtype).reshape(shape)
        out = part if out is None else out + part
    if mode == "tf_crop_and_resize":
        outside = (position < 0) | (position > axis.n - 1)
        value = n.get("extrapolation_value", 0.0)
        if outside.any():
            out = np.where(outside.reshape(shape), np.asarray(value, x.dtype), out)
    return out


# ---- sizes -------------------------------------------------------------------------------------


def _axes(n: NodeView, x: Any, roi: Any, scales: Any, sizes: Any) -> list[tuple[int, ResizedAxis]]:
    """The axes to be resized."""
    shape = tuple(x.shape)
    chosen = [a % len(shape) for a in n.get("axes") or range(len(shape))]
    if roi is not None and np.size(roi):
        n.number(roi, "region")  # must be known
    ends = None if roi is None else np.asarray(roi, float).ravel()
    if ends is None or not ends.size:
        ends = np.repeat([0.0, 1.0], len(chosen))
    regions = [(float(ends[k]), float(ends[len(chosen) + k])) for k in range(len(chosen))]
    if sizes is not None and np.size(sizes):
        wanted = n.integers(sizes, "sizes")
        ratios = [_ratio(n, m, shape[a]) for m, a in zip(wanted, chosen, strict=True)]
        policy = n.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = (min if policy == "not_larger" else max)(ratios)
            ratios = [one] * len(ratios)
            wanted = [int(one * _known(n, shape[a]) + 0.5) for a in chosen]
    else:
        if scales is None or not np.size(scales):
            raise n.unsupported("without scales and sizes is not supported")
        n.number(scales, "scales")  # must be known
        ratios = [float(s) for s in np.asarray(scales).ravel()]
        wanted = [
            shape[a] if r == 1.0 else int(r * _known(n, shape[a]))
            for r, a in zip(ratios, chosen, strict=True)
        ]
    found = []
    for a, m, r, region in zip(chosen, wanted, ratios, regions, strict=True):
        whole = region == (0.0, 1.0) or n.get("coordinate_transformation_mode") != (
            "tf_crop_and_resize"
        )
        if not (whole and r == 1.0 and m == shape[a]):
            found.append((a, ResizedAxis(_known(n, shape[a]), _known(n, m), r, region)))
    return found


def _known(n: NodeView, length: Any) -> int:
    if isinstance(length, Dim):
        raise n.unsupported("of an axis of symbolic length is not supported")
    return int(length)


def _ratio(n: NodeView, m: Any, length: Any) -> float:
    return 1.0 if isinstance(m, Dim) and m == length else _known(n, m) / _known(n, length)


@imports("Resize", lengths=True, static=(1, 2, 3), grows=True)
def _resize(n: NodeView, x: Any, roi: Any = None, scales: Any = None, sizes: Any = None) -> Any:
    x = as_value(x)
    out = x
    for k, axis in _axes(n, x, roi, scales, sizes):
        if axis.m == 0:
            out = out[(slice(None),) * k + (slice(0, 0),)]
        else:
            out = _along(n, out, k, axis)
    if x.dtype.kind in "iu" and out.dtype != x.dtype:
        ends = np.iinfo(x.dtype)
        out = np.clip(np.rint(out), ends.min, ends.max)
    return astype(out, x.dtype)


# ---- sampling at points ------------------------------------------------------------------------

_MODES = {"linear": "bilinear", "cubic": "bicubic"}


@imports("GridSample")
def _grid_sample(n: NodeView, x: Any, grid: Any) -> Any:
    mode = n.get("mode", "linear")
    options = (n.get("padding_mode", "zeros"), bool(n.get("align_corners", 0)))
    return astype(grid_sample(x, grid, _MODES.get(mode, mode), *options), x.dtype)


@imports("AffineGrid", static=(1,), grows=True)
def _affine_grid(n: NodeView, theta: Any, size: Any) -> Any:
    wanted = n.integers(size, "size")
    for k in wanted[2:]:
        n.need((_known(n, k),), np.float64)
    return affine_grid(theta, wanted, bool(n.get("align_corners", 0)))


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_boxes_per_class: int = 0,
    iou_threshold: float = 0.0,
    score_threshold: float | None = None,
    *,
    center_point_box: bool = False,
) -> Any:
    """The boxes of each class, by decreasing score, without those that overlap with earlier ones.

    Parameters
    ----------
    boxes : array, shape (batch, boxes, 4)
        Two opposite corners (y1, x1, y2, x2), or with `center_point_box` (x, y, width, height).
    scores : array, shape (batch, classes, boxes)
    max_output_boxes_per_class : int, default 0
        The most boxes of a class in an element of the batch.
    iou_threshold : float, default 0.0
        A box is dropped if the area of its intersection with an earlier one, divided by that of
        their union, is larger.
    score_threshold : float, optional
        Boxes of this score or less are dropped.
    center_point_box : bool, default False

    Returns
    -------
    array of int64, shape (selected, 3)
        The positions of selected boxes: element of the batch, class, box.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert as wg
    >>> boxes = np.array([[[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]]])
    >>> scores = np.array([[[0.7, 0.9, 0.5]]])
    >>> wg.onnx.non_max_suppression(boxes, scores, 3, 0.5)
    array([[0, 0, 1],
           [0, 0, 2]])
    """
    corners = _corners(np.asarray(value_of(boxes)), center_point_box)
    scores = np.asarray(value_of(scores))
    found = []
    for sample, class_ in np.ndindex(scores.shape[:2]):
        row = scores[sample, class_]
        order = np.argsort(-row, kind="stable")
        if score_threshold is not None:
            order = order[row[order] > score_threshold]
        kept: list[int] = []
        for box in order:
            if len(kept) >= max_output_boxes_per_class:
                break
            if not np.any(_overlap(corners[sample, kept], corners[sample, box]) > iou_threshold):
                kept.append(int(box))
        found += [(sample, class_, box) for box in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def _corners(boxes: Any, centers: bool) -> Any:
    """Boxes as their lower and upper corners, shape (..., 2, 2)."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if centers:
        first, second = first - second / 2, first + second / 2
    return np.stack([np.minimum(first, second), np.maximum(first, second)], axis=-2)


def _overlap(some: Any, one: Any) -> Any:
    """The areas of intersections divided by those of unions; 0 for boxes without an area."""
    sides = np.minimum(some[:, 1], one[1]) - np.maximum(some[:, 0], one[0])
    common = np.prod(np.maximum(sides, 0), axis=-1)
    areas = np.prod(some[:, 1] - some[:, 0], axis=-1), np.prod(one[1] - one[0], axis=-1)
    union = areas[0] + areas[1] - common
    return np.where((common > 0) & (union > 0), common / np.where(union > 0, union, 1), 0)


@imports("NonMaxSuppression", static=(0, 1, 2, 3, 4))
def _suppressed(
    n: NodeView, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None
) -> Any:
    if isinstance(boxes, Handle) or isinstance(scores, Handle):
        raise n.unsupported(
            "selects a number of boxes that is known only when it runs. Load the part of the file "
            "before it (onnx.utils.extract_model), and call wg.onnx.non_max_suppression with its "
            "results; or pass boxes and scores to onnx.load as `given`"
        )
    count = 0 if most is None else int(n.number(most, "number of boxes"))
    return non_max_suppression(
        boxes,
        scores,
        count,
        0.0 if overlap is None else float(n.number(overlap, "threshold")),
        None if least is None else float(n.number(least, "threshold")),
        center_point_box=bool(n.get("center_point_box", 0)),
    )
