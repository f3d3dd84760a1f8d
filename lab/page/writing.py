"""The files that a reader's browser opens: scripts, and one page that holds all of it."""

import gzip
import html
import json
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

HERE = Path(__file__).parent
PARTS = (  # joined in this order
    *("style.js", "model.js", "search.js", "pictures.js", "tree.js", "controls.js", "view.js"),
    *("lens.js", "word.js", "order.js", "vectors.js", "forced.js", "opened.js"),
)
LOADED = "courseTranslatorLoaded"  # the function that the weights' file calls


def code_script() -> str:
    """The translator's code: one script that gives the page `courseTranslator`."""
    parts = "\n".join((HERE / name).read_text(encoding="utf-8") for name in PARTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


def weights_script(content: Mapping[str, Any]) -> str:
    """A script that hands a model to the page: it works from a file as well as from a server."""
    return f"{LOADED}({_safe(content)});\n"


def whole_page(content: Mapping[str, Any]) -> str:
    """One page with code and model."""
    sizes, measured = content["sizes"], content["measured"]
    about = (
        f"{sizes['num_layers']} + {sizes['num_layers']} layers, {sizes['num_heads']} heads, width "
        f"{sizes['d_model']}, trained for {content['steps']:,} steps. It gets "
        f"{measured['exact']:,} of {measured['sentences']:,} sentences that it never saw right in "
        "every word. Nothing is sent anywhere."
    )
    page = Template((HERE / "page.html").read_text(encoding="utf-8"))
    return page.substitute(
        title="A translator of my own",
        about=html.escape(about),
        code=code_script().replace("</script", "<\\/script"),
        weights=weights_script(content),
    )


def gzipped(text: str) -> int:
    """Bytes of a text as a server sends it."""
    return len(gzip.compress(text.encode(), 9, mtime=0))


def _safe(content: Mapping[str, Any]) -> str:
    """JSON that may stand in a script element."""
    return json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
