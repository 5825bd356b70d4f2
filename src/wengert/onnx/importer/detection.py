"""NonMaxSuppression: the boxes that do not overlap with one of a higher score.

The number of selected boxes depends on values, so boxes and scores must be known during the import.
For a file whose last operator this is, `non_max_suppression` selects from the results of the part
before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, value_of

from .node_view import NodeView
from .registry import imports


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
