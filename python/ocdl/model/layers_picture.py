"""A network as a small picture: the features, the layers on the axis of time, the outputs."""

from __future__ import annotations

import numpy as np

from ocdl.base import markup
from ocdl.base.names import pluralise

MAX_MARKS = 60  # layers that are marked one by one
LEFT, RIGHT, MIDDLE, HEIGHT = 96, markup.WIDTH - 96, 34, 76  # where the axis begins and ends, its height, the picture's


def draw_layers(features: int, outputs: int, words: str, horizon: float | None, layers: int) -> str:
    """Return the picture; a feed-forward network has no time, and its horizon is None."""
    marks = np.linspace(LEFT, RIGHT, min(layers, MAX_MARKS) + 1)
    line = f'<line x1="{LEFT}" x2="{RIGHT}" y1="{MIDDLE}" y2="{MIDDLE}" stroke="currentColor" stroke-width="2"/>'
    states = "".join(f'<circle cx="{x:.1f}" cy="{MIDDLE}" r="3.5" fill="currentColor"/>' for x in marks)
    first, last = ("y(0)", f"y({horizon:g})") if horizon is not None else ("y[0]", f"y[{layers}]")
    texts = [
        markup.text(4, MIDDLE + 4, pluralise(features, "feature"), "start"),
        markup.text(LEFT, MIDDLE - 14, first, "middle"),
        markup.text(RIGHT, MIDDLE - 14, last, "middle"),
        markup.text(markup.WIDTH - 4, MIDDLE + 4, pluralise(outputs, "output"), "end"),
        markup.text((LEFT + RIGHT) / 2, MIDDLE + 26, words, "middle"),
    ]
    description = f"{pluralise(features, 'feature')}, {words}, {pluralise(outputs, 'output')}"
    return markup.picture(line + states + "".join(texts), description, HEIGHT)
