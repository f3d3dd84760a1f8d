"""The theme's icons in a finished build, cut down to those in use.

The theme brings a font of 1,400 icons and a rule of its style sheet for each; the book shows some
twenty. What no page, script or other rule asks for is taken out of both.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx

NAME = re.compile(r"\bfa-([a-z0-9-]+)")
RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"[^"]*"\}')
SOURCES = re.compile(r"url\(([^)]*/fa-solid-900)\.woff2\)[^;}]*")
WRITTEN = re.compile(r'"\\([0-9a-f]{2,5})"')  # a character of a style sheet by its number ...
DIRECT = re.compile("[\ue000-\uf8ff]")  # ... or as it is, where fonts keep their icons


def without_unused(sheet: str, names: set[str]) -> str:
    """The style sheet without the rules of icons that are not among these names."""
    return RULE.sub(lambda rule: rule[0] if names & set(NAME.findall(rule[1])) else "", sheet)


def characters(sheet: str) -> set[int]:
    """The characters that a style sheet may draw as icons."""
    return {int(code, 16) for code in WRITTEN.findall(sheet)} | set(map(ord, DIRECT.findall(sheet)))


def only(font: bytes, wanted: set[int]) -> bytes:
    """The font with these characters alone, packed for the web."""
    options = Options(layout_features=[])
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=wanted)
    packed = io.BytesIO()
    with TTFont(io.BytesIO(font)) as whole:
        subsetter.subset(whole)
        whole.flavor = "woff"
        whole.save(packed)
    return packed.getvalue()


def cut_icons(app: Sphinx, exception: Exception | None) -> None:
    """Cut the icons of a finished HTML build, whose theme Sphinx has copied afresh."""
    static = Path(app.outdir) / "_static"
    whole = static / "vendor" / "fontawesome" / "webfonts" / "fa-solid-900.ttf"
    if exception is not None or app.builder.format != "html" or not whole.is_file():
        return
    asking = [*static.parent.glob("*.html"), *static.rglob("*.js")]
    names = {name for path in asking for name in NAME.findall(path.read_text(encoding="utf-8"))}
    theme = static / "styles" / "pydata-sphinx-theme.css"
    sheet = without_unused(theme.read_text(encoding="utf-8"), names)
    theme.write_text(SOURCES.sub(r'url(\1.woff) format("woff")', sheet), encoding="utf-8")
    sheets = [path.read_text(encoding="utf-8") for path in static.rglob("*.css")]
    wanted = set().union(*map(characters, sheets))
    whole.with_suffix(".woff").write_bytes(only(whole.read_bytes(), wanted))
    for unused in (whole, whole.with_suffix(".woff2")):
        unused.unlink(missing_ok=True)
