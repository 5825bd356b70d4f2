"""Data, Stan programs and reference means, from a checkout of stan-dev/posteriordb.

data         the data of a posterior: a dict of numbers and arrays
program      the path of its Stan program
reference    the means of its parameters and their standard errors, where they are known
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

VARIABLE = "POSTERIORDB"  # names the checkout


def folder() -> Path:
    """The folder of the database in the checkout."""
    return Path(os.environ[VARIABLE]) / "posterior_database"


def entry(posterior: str) -> dict[str, Any]:
    """What the database says of a posterior."""
    text = (folder() / "posteriors" / f"{posterior}.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


def data(posterior: str) -> dict[str, Any]:
    """The data of a posterior."""
    name = entry(posterior)["data_name"]
    with zipfile.ZipFile(folder() / "data" / "data" / f"{name}.json.zip") as archive:
        found = json.loads(archive.read(f"{name}.json"))
    return {k: np.asarray(v) if isinstance(v, list) else v for k, v in found.items()}


def program(posterior: str) -> Path:
    """The Stan program of a posterior."""
    return folder() / "models" / "stan" / f"{entry(posterior)['model_name']}.stan"


def reference(posterior: str) -> tuple[dict[str, float], dict[str, float]] | None:
    """Means and their standard errors, of ``mu`` or ``theta[1]``; None if there are none."""
    name = entry(posterior)["reference_posterior_name"]
    kind = "mean_value"
    path = folder() / "reference_posteriors" / "summary_statistics" / kind / kind / f"{name}.json"
    if not path.exists():
        return None
    found = json.loads(path.read_text())
    means = dict(zip(found["names"], found["mean_value"], strict=True))
    return means, dict(zip(found["names"], found["mcse_mean"], strict=True))
