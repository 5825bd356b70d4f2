"""Folders of images, one per class; the only module that imports Pillow.

    read_image    one file as an array
    ImageFolder   a folder of folders

Pillow is the extra `images` of this package, and is imported when the first picture is read.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, FileError, at, user_line

from ..dataset import Dataset
from .compressed import damaged

__all__ = ["ImageFolder", "read_image"]

_SUFFIXES = tuple(".png .jpg .jpeg .bmp .gif .ppm .pgm .pbm .tif .tiff .webp".split())
_MODES = ("L", "RGB", "RGBA")


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        raise ArgumentError(
            "reading images needs Pillow, which is not installed. Install wengert[images]"
            f"{at(user_line())}."
        ) from error


def read_image(
    path: str | os.PathLike[str], mode: str = "RGB", size: tuple[int, int] | None = None
) -> Any:
    """A picture as an array.

    Parameters
    ----------
    path : path
        Of any kind that Pillow reads.
    mode : {"RGB", "L", "RGBA"}
        RGB, gray, or RGB with alpha; files are converted.
    size : (int, int), optional
        Height and width to resize it to (bilinear).

    Returns
    -------
    array of uint8, shape (channels, height, width)

    Raises
    ------
    FileError
        It is damaged, or no picture.
    ArgumentError
        An unknown mode, or Pillow is not installed.
    OSError
        It cannot be opened.
    """
    if mode not in _MODES:
        raise ArgumentError(f"read_image(mode={mode!r}): one of {_MODES}{at(user_line())}.")
    pillow = _pillow()
    with open(path, "rb") as file:
        try:
            picture = pillow.open(file).convert(mode)
        except (OSError, ValueError, SyntaxError, EOFError, pillow.DecompressionBombError) as error:
            raise damaged(path, f"no picture that can be read ({error})") from error
    if size is not None:
        picture = picture.resize((size[1], size[0]), pillow.Resampling.BILINEAR)
    array = np.asarray(picture)
    return np.ascontiguousarray(array[None] if array.ndim == 2 else np.moveaxis(array, -1, 0))


class ImageFolder(Dataset):
    """Pictures in folders, one for each class, as PyTorch's dataset of that name has them.

    Parameters
    ----------
    root : path
        With a folder for each class; classes are numbered in the order of their names. Pictures
        may be in folders within them.
    mode, size
        Of `read_image`. Without a size all pictures of a batch have to be of the same.

    Attributes
    ----------
    classes : list of str
    files : list of (Path, int)

    Notes
    -----
    Items are (picture, class): uint8 of shape (channels, height, width), and int. Files are read
    when an item is asked for, which takes milliseconds: worker processes pay here.

    Raises
    ------
    FileError
        There is no such folder, no class in it, or a class without pictures.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        mode: str = "RGB",
        size: tuple[int, int] | None = None,
    ) -> None:
        place = Path(root)
        if mode not in _MODES:
            raise ArgumentError(f"ImageFolder(mode={mode!r}): one of {_MODES}{at(user_line())}.")
        if not place.is_dir():
            raise FileError(f"{place} is not a folder. Pass an existing one{at(user_line())}.")
        self.root, self.mode, self.size = place, mode, size
        self.classes = sorted(p.name for p in place.iterdir() if p.is_dir())
        self.files: list[tuple[Path, int]] = []
        for number, name in enumerate(self.classes):
            found = sorted(
                p for p in (place / name).rglob("*") if p.suffix.lower() in _SUFFIXES if p.is_file()
            )
            if not found:
                raise FileError(
                    f"{place / name} has no pictures ({' '.join(_SUFFIXES)}). Put some there, or "
                    f"remove the folder{at(user_line())}."
                )
            self.files += [(path, number) for path in found]
        if not self.classes:
            raise FileError(
                f"{place} has no folders. Put the images of each class into a "
                f"folder{at(user_line())}."
            )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: Any) -> tuple[Any, int]:
        path, number = self.files[index]
        return read_image(path, self.mode, self.size), number

    def __repr__(self) -> str:
        return f"ImageFolder({len(self)} pictures of {len(self.classes)} classes)"
