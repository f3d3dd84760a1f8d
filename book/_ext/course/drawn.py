"""Pictures that cells draw, written into their page: they follow its theme and its typeface.

The cells' pictures are SVG. A file of its own would know neither the reader's theme nor the book's
letters, so it becomes a part of the page. Every colour gets a second one for the dark theme: those
of `lab.plots` have theirs in a table, any other keeps its hue, and its contrast to white becomes
that to black. A matrix, which is drawn in dots, is there twice; an image with the gid "as-it-is" is
not.
"""

from __future__ import annotations

import base64
import colorsys
import io
import re
import xml.etree.ElementTree as ET
from functools import cache
from itertools import chain, count, groupby
from pathlib import Path

import numpy as np
from docutils import nodes
from PIL import Image, ImageColor
from sphinx.application import Sphinx

SVG = "http://www.w3.org/2000/svg"
LINK = "{http://www.w3.org/1999/xlink}href"
ZOOM = 100 / 72  # pixels on the page for a point of the picture
PAPER = "#ffffff"
AS_IT_IS = "as-it-is"  # the gid of what is a picture of something, and has no dark side
NIGHT = "#14161d"  # the page in the dark theme
SCENE = "var(--pst-color-background)"
LEGIBLE = 4.5  # contrast of letters to their page, as WCAG 2 asks for
# Colours of `lab.plots`, and what they are on a dark page; tests/test_book_drawn.py measures both.
DARK = {
    PAPER: SCENE,
    "#1c2126": "#e6e8ee",
    "#000000": "#ffffff",
    "#0341bb": "#81a4ff",
    "#e67206": "#f37921",
    "#1e8d74": "#4a9472",
    "#b1088b": "#cc0aa1",
    "#745c15": "#e4e1a0",
    "#222426": "#edeeef",
    "#8b929a": "#7b8390",
    "#e3e6ea": "#333846",
    "#5b636c": "#a9b0bb",
}
NUMBER = re.compile(r"-?\d+\.\d{3,}")
COLOR = re.compile(r"#[0-9a-f]{6}")
USED = re.compile(r"(?:url\(#|^#)([^)]+)\)?")
IN_BETWEEN = re.compile(r"\s+")

Style = dict[str, str]


@cache
def dark(color: str) -> str:
    """What stands for a colour on a dark page."""
    if color in DARK:
        return DARK[color]
    hue, _, strength = colorsys.rgb_to_hls(*_channels(color))
    wanted = 0.05 * 1.05 / (_luminance(color) + 0.05) - 0.05
    low, high = 0.0, 1.0
    for _ in range(12):  # luminance grows with lightness
        middle = (low + high) / 2
        found = _hex(colorsys.hls_to_rgb(hue, middle, strength))
        low, high = (middle, high) if _luminance(found) < wanted else (low, middle)
    return _hex(colorsys.hls_to_rgb(hue, high, strength))


@cache
def legible(color: str, page: str) -> str:
    """The colour, moved away from a page's lightness until letters of it can be read there."""
    hue, lightness, strength = colorsys.rgb_to_hls(*_channels(color))
    step = -0.01 if _luminance(page) > 0.5 else 0.01
    while _contrast(color, page) < LEGIBLE:
        lightness += step
        color = _hex(colorsys.hls_to_rgb(hue, lightness, strength))
    return color


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _channels(color: str) -> tuple[float, float, float]:
    return tuple(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))  # type: ignore[return-value]


def _hex(channels: tuple[float, float, float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in channels)


def _luminance(color: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(color))
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def inline(svg: str, alternative: str, prefix: str) -> str:
    """A picture of matplotlib's as a part of a page.

    Args:
        svg: the file's text.
        alternative: what the picture shows, for those who do not see it.
        prefix: what the names inside it begin with; another one for each picture of a page.
    """
    root = ET.fromstring(svg)
    width = float(root.attrib.pop("width").removesuffix("pt"))
    root.attrib.pop("height")
    _leave_out(root)
    kept = {one for part in root.iter() if part.get("id") == AS_IT_IS for one in part.iter()}
    _rename(root, prefix)
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{SVG}}}")
        _restyle(element)
    _double_dots(root, kept)
    role = "group" if _join_links(root) else "img"  # an image would hide its links
    _flatten(root)
    root.attrib |= {"class": "drawn", "role": role, "aria-label": alternative}
    root.set("style", f"width: {width * ZOOM:.0f}px")
    return re.sub(r">\s+<", "><", ET.tostring(root, encoding="unicode"))


def _leave_out(root: ET.Element) -> None:
    """What would hold for the whole page, what nobody sees, and the white behind everything."""
    for parent in list(root.iter()):
        for child in list(parent):
            kind = child.tag.removeprefix(f"{{{SVG}}}")
            is_paper = parent.get("id") == "figure_1" and child.get("id") == "patch_1"
            if kind in ("metadata", "style") or is_paper:
                parent.remove(child)


def _rename(root: ET.Element, prefix: str) -> None:
    """Give names that are used inside the picture a prefix; the others go."""
    used = {
        name
        for element in root.iter()
        for value in element.attrib.values()
        for name in USED.findall(value)
    }
    for element in root.iter():
        name = element.attrib.pop("id", "")
        if name in used:
            element.set("id", f"{prefix}{name}")
        if LINK in element.attrib:
            target = element.attrib.pop(LINK)
            is_inside = target.startswith("#") and not element.tag.endswith("}a")
            element.set("href", f"#{prefix}{target[1:]}" if is_inside else target)
        if "clip-path" in element.attrib:
            element.set("clip-path", element.get("clip-path", "").replace("#", f"#{prefix}"))


def _restyle(element: ET.Element) -> None:
    """Colours for both themes, numbers that are short, and the page's letters."""
    for name in ("d", "transform", "x", "y", "points"):
        if name in element.attrib:
            text = NUMBER.sub(_short, element.get(name, ""))
            element.set(name, IN_BETWEEN.sub(" ", text).strip())
    style = _read_style(element.attrib.pop("style", ""))
    style.pop("font-family", None)  # the style sheet gives it
    if element.tag == "text":
        style.setdefault("fill", "#000000")
    for name in ("fill", "stroke"):
        color = style.get(name, "")
        if COLOR.fullmatch(color):
            element.set(name, color)  # for browsers that do not know the next line
            day, night = _letters(color) if element.tag == "text" else (color, dark(color))
            style[name] = f"light-dark({day}, {night})"
    if style:
        element.set("style", ";".join(f"{name}:{value}" for name, value in style.items()))


def _letters(color: str) -> tuple[str, str]:
    """Colours of letters in both themes; what is white stands on something filled."""
    if color == PAPER:
        return PAPER, "#000000"
    return legible(color, PAPER), legible(dark(color), NIGHT)


def _join_links(root: ET.Element) -> bool:
    """Make a box and the lines in it, which have one address, one link of the same window."""
    found = False
    for parent in list(root.iter()):
        last: ET.Element | None = None
        for group in list(parent):
            links = group.findall("a")
            for link in links:
                found = True
                link.attrib.pop("target", None)
                if last is not None and last.get("href") == link.get("href"):
                    last.extend(link)
                    group.remove(link)
                else:
                    last = link
            last = last if links else None
    return found


def _flatten(root: ET.Element) -> None:
    """As few elements as show the same: a page lays out each of them before anything is seen."""
    for parent in list(root.iter())[::-1]:
        children = [part for child in parent for part in _unwrapped(child)]
        children = [_together(list(run)) for _, run in groupby(children, _line)]
        children = [_clipped(list(run)) for _, run in groupby(chain(*children), _clip)]
        parent[:] = chain(*children)


def _unwrapped(part: ET.Element) -> list[ET.Element]:
    """What a group holds that says nothing itself."""
    return list(part) if part.tag == "g" and not part.attrib else [part]


def _line(part: ET.Element) -> object:
    """What neighbouring lines have in common that may as well be one; else the part itself.

    Not what is filled, or can be seen through: there it matters where two lie upon each other.
    """
    style = part.get("style", "")
    is_line = part.tag == "path" and "fill:none" in style and "opacity" not in style
    return {**part.attrib, "d": ""} if is_line and len(part) == 0 else part


def _together(run: list[ET.Element]) -> list[ET.Element]:
    """One path instead of neighbouring ones that look alike."""
    if len(run) > 1:
        run[0].set("d", " ".join(part.get("d", "") for part in run))
    return run[:1]


def _clip(part: ET.Element) -> object:
    """The frame at which a part is cut off, or the part itself."""
    return part.get("clip-path") or part


def _clipped(run: list[ET.Element]) -> list[ET.Element]:
    """Neighbours that are cut off at one frame, in a group that is."""
    if len(run) == 1:
        return run
    group = ET.Element("g", {"clip-path": run[0].attrib["clip-path"]})
    for part in run:
        del part.attrib["clip-path"]
    group[:] = run
    return [group]


def _double_dots(root: ET.Element, kept: set[ET.Element]) -> None:
    """A matrix of dots for each theme; the style sheet shows one of them."""
    for parent in list(root.iter()):
        for place, image in reversed(list(enumerate(parent))):
            if image.tag == "image" and image not in kept:
                night = ET.Element("image", image.attrib | {"class": "night"})
                night.set("href", _turned(image.get("href", "")))
                image.set("class", "day")
                parent.insert(place + 1, night)


def _turned(address: str) -> str:
    """A picture in a `data:` address, for a dark page."""
    with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as picture:
        dots = np.asarray(picture.convert("RGBA"))
    colors, places = np.unique(dots.reshape(-1, 4), axis=0, return_inverse=True)
    night = np.array([(*ImageColor.getrgb(_dark_dot(one)), one[3]) for one in colors], np.uint8)
    written = io.BytesIO()
    turned = Image.fromarray(night[places.reshape(-1)].reshape(dots.shape))
    turned.save(written, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(written.getvalue()).decode()


def _dark_dot(dot: np.ndarray) -> str:
    color = "#" + "".join(f"{part:02x}" for part in dot[:3])
    return NIGHT if color == PAPER else dark(color)


def _read_style(text: str) -> Style:
    pairs = (part.partition(":") for part in text.split(";") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def write_into_page(app: Sphinx, doctree: nodes.document, _page: str) -> None:
    """Put the pictures of a page's cells into the page, where it is one of HTML."""
    if app.builder.format != "html":
        return
    numbers = count(1)
    for image in list(doctree.findall(nodes.image)):
        path = Path(app.srcdir) / image["uri"]
        if path.suffix == ".svg" and "jupyter_execute" in path.parts:
            text = inline(path.read_text(encoding="utf-8"), image["alt"], f"p{next(numbers)}-")
            drawing = nodes.raw("", text, format="html")
            parent = image.parent
            link = parent if isinstance(parent, nodes.reference) else image  # to the file itself
            link.replace_self(drawing)
