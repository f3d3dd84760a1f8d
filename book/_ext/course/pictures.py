"""The pictures of a finished build, made lighter: a palette of 256 colours in place of all.

Drawn curves and matrices have a few hundred shades, most of them where a line meets the paper. A
picture that would look different (a photograph, a smooth gradient) stays as it is.
"""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image, ImageChops, ImageStat
from sphinx.application import Sphinx

COLORS = 256
MEAN_ERROR = 0.5  # of 255, over a picture: more may be seen


def lighter(picture: bytes) -> bytes:
    """The same picture with a palette if that is smaller and looks the same, else what is given."""
    with Image.open(io.BytesIO(picture)) as image:
        transparent = image.mode == "RGBA" and image.getchannel("A").getextrema() != (255, 255)
        if image.mode == "P" or transparent:
            return picture  # P: done already
        full = image.convert("RGB")
    few = full.quantize(COLORS, method=Image.Quantize.MEDIANCUT, kmeans=1, dither=Image.Dither.NONE)
    difference = ImageChops.difference(full, few.convert("RGB"))
    if max(ImageStat.Stat(difference).mean) > MEAN_ERROR:
        return picture
    written = io.BytesIO()
    few.save(written, "PNG", optimize=True)
    return min(picture, written.getvalue(), key=len)


def lighten_pictures(app: Sphinx, exception: Exception | None) -> None:
    """Make every PNG of a finished HTML build lighter; the second time nothing changes."""
    if exception is not None or app.builder.format != "html":
        return
    for path in sorted((Path(app.outdir) / "_images").glob("*.png")):
        before = path.read_bytes()
        after = lighter(before)
        if after != before:
            path.write_bytes(after)
