"""Write GIF files several times faster than Matplotlib: artists that do not move are drawn once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from PIL import Image

COLOURS = 256  # of a GIF
TOO_CLOSE = 6  # difference of colours, 0 to 255, that Pillow does not distinguish


class StillGifWriter(PillowWriter):
    """Write a film of a figure in which only the artists `moving` change; they are in the foreground."""

    def __init__(self, fps: int, moving: Sequence[Artist]) -> None:
        super().__init__(fps=fps)
        self._moving = moving

    def setup(self, fig: Figure, outfile: str | Path, dpi: float | None = None) -> None:
        """Draw the artists that do not move."""
        super().setup(fig, outfile, fig.dpi)
        width, height = (int(side) for side in fig.bbox.size)
        self._renderer: Any = RendererAgg(width, height, fig.dpi)  # type: ignore[no-untyped-call]
        for artist in self._moving:
            artist.set_visible(False)
        fig.draw(self._renderer)
        for artist in self._moving:
            artist.set_visible(True)
        self._still = self._renderer.copy_from_bbox(fig.bbox)
        self._pictures: list[Image.Image] = []

    def grab_frame(self, **savefig_kwargs: Any) -> None:
        """Draw the moving artists; all frames use the palette of the first."""
        self._renderer.restore_region(self._still)
        for artist in self._moving:
            artist.draw(self._renderer)
        picture = Image.fromarray(np.array(self._renderer.buffer_rgba())[..., :3])
        if not self._pictures:
            self._palette = _palette(picture, self._moving)
        self._pictures.append(picture.quantize(palette=self._palette, dither=Image.Dither.NONE))

    def finish(self) -> None:
        """Write the file, which loops endlessly."""
        first, *others = self._pictures
        first.save(self.outfile, save_all=True, append_images=others, duration=int(1000 / self.fps), loop=0)


def _palette(picture: Image.Image, moving: Sequence[Artist]) -> Image.Image:
    """Return an image with 256 colours: white and those of the points exactly, then those of the picture."""
    faces = [points.get_facecolor() for points in moving if isinstance(points, Collection)]
    exact = np.vstack([np.ones((1, 4)), *faces])[: COLOURS // 2, :3]
    numbers = (255 * exact).round().astype(int)
    others = np.reshape(picture.quantize(COLOURS - len(numbers)).getpalette() or [], (-1, 3))
    distances = np.abs(others[:, None] - numbers).max(axis=-1)
    others = others[distances.min(axis=1) > TOO_CLOSE]
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.vstack([numbers, others]).ravel().tolist())
    return palette
