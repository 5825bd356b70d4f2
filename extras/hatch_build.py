"""Which files wengert-extras has: what the distribution wengert excludes.

In a checkout they are in ../src, and ../pyproject.toml lists them; an sdist has them in src.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ExtraPackages(BuildHookInterface):  # type: ignore[type-arg]  # hatchling has no types here
    """Adds the packages to a wheel or an sdist."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are collected; `version` is "editable" in development mode."""
        if version == "editable":
            return
        root = Path(self.root)
        if (root / "src").is_dir():
            folders = {root / "src" / "wengert": "wengert"}
        else:
            project = tomllib.loads((root.parent / "pyproject.toml").read_text(encoding="utf-8"))
            names = [name.strip("/") for name in project["tool"]["hatch"]["build"]["exclude"]]
            folders = {root.parent / name: name.removeprefix("src/") for name in names}
        prefix = "src/" if self.target_name == "sdist" else ""
        for folder, name in folders.items():
            build_data["force_include"][str(folder)] = prefix + name
