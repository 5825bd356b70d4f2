"""Training runs described by a file.

Everything that it writes goes into one folder: checkpoints, the log, the weights.  A folder that
holds a training already is gone on with, or refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import nn
from ..errors import ArgumentError
from . import toml_config
from .from_config import data_of, loss_of, model_of, optimizer_of

FIT = (
    "epochs", "batch_size", "metrics", "folder", "accumulate", "clip_norm", "clip_value", "ema",
    "compile",
)  # fmt: skip


def run(options: Any) -> None:
    """Train, and say what came of it."""
    entries = toml_config.read(options.config, options.changes)
    fit = dict(entries.get("fit", {}))
    toml_config.only(fit, FIT, "[fit]")
    rng = np.random.default_rng(entries.get("seed", 0))
    base = options.config.resolve().parent
    folder = base / fit.pop("folder", options.config.stem)
    if (folder / "last.wengert").exists() and not options.resume:
        raise ArgumentError(
            f"{folder} holds a training already. Go on with it (--resume), or name another folder "
            "(--set fit.folder=NAME)."
        )
    known, held_out = data_of(entries["data"], base, rng)
    model = model_of(entries["model"], rng)
    folder.mkdir(parents=True, exist_ok=True)
    history = nn.fit(
        model,
        known,
        loss_of(entries.get("loss", {})),
        optimizer_of(entries.get("optimizer", {}), model),
        validation=held_out,
        checkpoint=folder,
        resume=options.resume,
        log=folder / "log.jsonl",
        progress=not options.quiet,
        rng=rng,
        **fit,
    )
    nn.save_safetensors(model, folder / "weights.safetensors")
    print(history)
    print(f"wrote {folder / 'weights.safetensors'}")
