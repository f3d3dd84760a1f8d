"""An interactive figure: an ES module of ours, put into the page so that it also runs on file://.

    ```{anywidget} explorers/03_attention.mjs
    {"d_k": 4, "tokens": ["the", "cat", "sat"]}
    ```

The module is an AnyWidget front-end module: `export default { render({ model, el }) { ... } };`
with exactly one `export default`, at the beginning of a line, and no imports. What explorers share,
`shared.mjs` in the same folder, is there as `course`. `model.get("d_k")` reads the JSON body. A
reader without JavaScript sees a sentence instead. A body that is not JSON, or a module that breaks
these rules, is a build error with file and line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)

EXPORT = re.compile(r"^export default\b", re.MULTILINE)
IMPORT = re.compile(r"^\s*(?:import\b\s*[\w{*\"'(]|export\s+(?!default\b))", re.MULTILINE)
SHARED = "shared.mjs"
FALLBACK = (
    "This figure is interactive and needs JavaScript. "
    "The text and the printed numbers of this page do not depend on it."
)

PAGE = """\
<div class="anywidget" id="{name}"><p class="anywidget-fallback">{fallback}</p></div>
<script type="module">
const values = {values};
const watchers = [];
const model = {{
  get: (key) => values[key],
  set: (key, value) => {{
    values[key] = value;
    watchers.filter((w) => w.event === "change:" + key).forEach((w) => w.run());
  }},
  on: (event, run) => watchers.push({{ event, run }}),
  save_changes: () => {{}},
}};
{module}
const el = document.getElementById("{name}");
el.replaceChildren();
await widget.render({{ model, el }});
</script>
"""


class WidgetError(ValueError):
    """A widget's module or data breaks a rule; `line` counts from 0 in the directive's body."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def read_values(body: str) -> dict[str, Any]:
    """Return the JSON object of a directive's body; an empty body is an empty object."""
    try:
        values = json.loads(body or "{}")
    except json.JSONDecodeError as error:
        raise WidgetError(
            f"the body is not JSON: {error.msg} (column {error.colno}); "
            "write strict JSON, with double quotes and no comma at the end",
            error.lineno - 1,
        ) from error
    if not isinstance(values, dict):
        raise WidgetError(f"the body is {body[:30]!r}; write a JSON object, {{...}}")
    return values


def bind_module(source: str, bound: str = "const widget =") -> str:
    """Return the module with something else in the place of its `export default`."""
    exports = len(EXPORT.findall(source))
    if exports != 1:
        raise WidgetError(
            f"the module has {exports} lines that begin with 'export default'; write exactly one"
        )
    found = IMPORT.search(source)
    if found:
        raise WidgetError(
            f"the module says {found.group().strip()!r}; imports and named exports cannot work "
            "inside a page, so keep everything in one file"
        )
    return EXPORT.sub(bound, source)


def inline(name: str, source: str, values: dict[str, Any], shared: str = "") -> str:
    """Return the HTML of one figure: host element, fallback sentence, data and module."""
    if shared:
        # in a function of its own, so that a figure may use the same names
        source = f"const course = (() => {{\n{bind_module(shared, 'return')}}})();\n{source}"
    # inside a script element only "</script" and "<!--" could end or confuse it
    module = re.sub(r"<(?=/script|!--)", r"\\x3c", bind_module(source), flags=re.IGNORECASE)
    data = json.dumps(values, ensure_ascii=False).replace("<", "\\u003c")
    return PAGE.format(name=name, fallback=FALLBACK, values=data, module=module)


class AnyWidget(SphinxDirective):
    """Put an interactive figure into the page."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the figure, or report what is wrong with its module or data."""
        _, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        if not Path(path).is_file():
            raise self.error(
                f"anywidget: there is no {self.arguments[0]}; "
                "write the path from this page's folder"
            )
        beside = Path(path).with_name(SHARED)
        self.env.note_dependency(str(beside))
        shared = beside.read_text(encoding="utf-8") if beside.is_file() else ""
        name = f"anywidget-{self.env.new_serialno('anywidget')}"
        try:
            values = read_values("\n".join(self.content))
            html = inline(name, Path(path).read_text(encoding="utf-8"), values, shared)
        except WidgetError as error:
            logger.warning(
                "anywidget %s: %s",
                self.arguments[0],
                error,
                location=(self.env.docname, self.lineno + 1 + error.line),
                type="course",
            )
            return []
        return [nodes.raw("", html, format="html")]
