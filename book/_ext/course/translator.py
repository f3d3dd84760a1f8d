"""The trained translator in a page: a picture first, the model itself when a reader asks for it.

    ```{translator} the doctor does not love the white house .
    :focus: heads
    ```

shows the sentence, what the model made of it, and one head's attention, from the file that
`python -m lab page RUN --weights` wrote, `translator/weights.js`. A button loads that file and the
code by script elements, which also work on file://. Until then the page is some
kilobytes heavier, and a reader without JavaScript has the picture. `focus` names the part that the
translator opens with: all, attention, heads, masks or search (`FOCUSES` in `lab/page/view.js`), or
one of the smaller figures of `LENSES` in `lab/page/opened.js`, whose pictures `lenses.py` draws:
word (a row of the embedding table; the argument is the word), order (positions on and off), layer
and stack (the vector of the token that `:word:` names) and forced (`:word:` of the translation
comes one place too early).
"""

from __future__ import annotations

import json
from html import escape
from itertools import chain
from pathlib import Path
from shutil import copyfile
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from course import lenses
from lab.page import writing

WEIGHTS = "translator/weights.js"  # not in _static: each page loads every script that lies there
FOLDER = "_static/translator"  # of the built book
FOCUSES = ("all", "attention", "heads", "masks", "search")
BUTTONS = {
    "all": "Write your own sentence",
    "word": "Look up your own word",
    "order": "Shuffle it yourself",
    "layer": "Follow another token",
    "stack": "Follow another token",
    "forced": "Make it err elsewhere",
}
ROW, WIDTH, LEFT, RIGHT = 28, 330, 120, 210  # of the picture
EOS = "<eos>"
FAINT = 0.02  # share of attention that is not drawn

NOTE = (
    "Written by a Transformer of {numbers:,} numbers, trained on a processor for some minutes. "
    "Below each word stands its probability (training asked for no more than 90\u202f%); the lines "
    "show what one of its heads looked at."
)
PAGE = """\
<div class="anywidget translator" id="{name}">
<div class="translator-poster">
<div class="translator-words">
<p class="translator-english" lang="en">{english}</p>
{french}<p class="translator-note">{note}</p>
<p class="translator-open"><button type="button" hidden>{button}</button>\
<span aria-live="polite"></span></p>
<noscript><p class="translator-note">To run it, the page needs JavaScript.</p></noscript>
</div>
{picture}
</div>
</div>
<script>
(() => {{
  const host = document.getElementById("{name}");
  const button = host.querySelector("button");
  const line = host.querySelector("[aria-live]");
  const load = (name) => new Promise((done, failed) => {{
    const script = document.createElement("script");
    Object.assign(script, {{ src: "{root}" + name, onload: done, onerror: failed }});
    document.head.append(script);
  }});
  button.hidden = false;
  button.addEventListener("click", async () => {{
    if (button.ariaDisabled === "true") return;
    button.ariaDisabled = "true";
    line.textContent = "Loading the model …";
    try {{
      if (!globalThis.courseTranslator) await load("code.js");
      if (!globalThis.courseTranslator.content()) await load("weights.js");
      globalThis.courseTranslator.open(host, {options});
      host.querySelector(".tr input").focus();
    }} catch {{
      line.textContent = "The model could not be loaded.";
      button.ariaDisabled = "false";
    }}
  }});
}})();
</script>
"""


def read_model(path: Path) -> dict[str, Any]:
    """What the file of weights holds."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


def picture(opening: dict[str, Any]) -> str:
    """The two sentences as columns, and one head's weights as curves between them."""
    keys, queries, chosen = opening["english"], opening["french"], opening["chosen"]
    height = ROW * max(len(keys), len(queries))
    best = opening["weights"][chosen]
    seen = keys[best.index(max(best))]
    told = (
        f"{len(queries)} French words, each joined to the English words that one head looked at "
        f"to write it; {queries[chosen]} is joined to {seen} most of all"
    )
    curves = chain.from_iterable(
        _curves(row, query, query == chosen) for query, row in enumerate(opening["weights"])
    )
    words = [
        *(_word(LEFT - 8, row, word, "end") for row, word in enumerate(keys)),
        *(
            _word(RIGHT + 8, row, word, "start", "translator-chosen" if row == chosen else "")
            for row, word in enumerate(queries)
        ),
    ]
    return (
        f'<svg class="translator-picture" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(told)}">{"".join(curves)}{"".join(words)}</svg>'
    )


def _curves(row: list[float], query: int, chosen: bool) -> list[str]:
    base, gain = (0.25, 0.75) if chosen else (0.08, 0.5)
    middle, end = (LEFT + RIGHT) / 2, ROW * (query + 0.5)
    return [
        f'<path d="M{LEFT} {ROW * (key + 0.5):g}C{middle:g} {ROW * (key + 0.5):g} {middle:g} '
        f'{end:g} {RIGHT} {end:g}" stroke-width="{0.6 + 5 * share:.1f}" '
        f'stroke-opacity="{base + gain * share:.2f}"/>'
        for key, share in enumerate(row)
        if share > FAINT
    ]


def _word(x: int, row: int, word: str, anchor: str, name: str = "") -> str:
    kind = f' class="{name}"' if name else ""
    place = f'x="{x}" y="{ROW * (row + 0.5) + 5:g}" text-anchor="{anchor}"'
    return f"<text {place}{kind}>{escape(word)}</text>"


def poster(
    name: str, root: str, model: dict[str, Any], sentence: str, focus: str, word: str = ""
) -> str:
    """The HTML of a translator that is not loaded yet.

    Raises:
        ValueError: if the file has no picture of this sentence.
    """
    if focus in lenses.POSTERS:
        told = lenses.POSTERS[focus](lenses.Translator(model), sentence, word)
        shown = {"english": escape(told.title), "french": "", "picture": told.picture}
        shown["note"] = escape(told.note)
    else:
        shown = _opening(model, sentence)
    return PAGE.format(
        name=name,
        root=root,
        button=BUTTONS.get(focus, "Open it"),
        options=json.dumps(
            {"focus": focus, "sentence": sentence, **({"word": word} if word else {})}
        ),
        **shown,
    )


def _opening(model: dict[str, Any], sentence: str) -> dict[str, str]:
    openings = {one["sentence"]: one for one in model["openings"]}
    if sentence not in openings:
        raise ValueError(
            f"the model's file shows no {sentence!r}; write one of {', '.join(openings)}, or make "
            "the file again with --sentence"
        )
    opening = openings[sentence]
    rows = zip(opening["french"], opening["shares"], strict=True)
    french = " ".join(
        f"<span>{escape(word)}<small>{100 * share:.0f}\u202f%</small></span>"
        for word, share in rows
        if word != EOS
    )
    return {
        "english": escape(sentence),
        "french": f'<p class="translator-french" lang="fr">{french}</p>\n',
        "note": NOTE.format(numbers=numbers_in(model)),
        "picture": picture(opening),
    }


def numbers_in(model: dict[str, Any]) -> int:
    """How many numbers the model learned."""
    shapes = dict(model["tensors"])
    del shapes["positions"]
    return sum(shape[0] * (shape[1] if len(shape) == 2 else 1) for shape in shapes.values())


class Translator(SphinxDirective):
    """Put the translator into the page."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {  # noqa: RUF012
        "focus": lambda argument: directives.choice(argument, (*FOCUSES, *lenses.POSTERS)),
        "word": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Return the picture and the button, or report what is wrong with the sentence."""
        path = Path(self.env.srcdir) / WEIGHTS
        self.env.note_dependency(str(path))
        name = f"translator-{self.env.new_serialno('translator')}"
        depth = self.env.docname.count("/")
        try:
            html = poster(
                name,
                "../" * depth + f"{FOLDER}/",
                read_model(path),
                self.arguments[0],
                self.options.get("focus", "all"),
                self.options.get("word", ""),
            )
        except ValueError as error:
            raise self.error(f"translator: {error}") from error
        return [nodes.raw("", html, format="html")]


def put_scripts(app: Sphinx, exception: Exception | None) -> None:
    """Put the translator's code and weights where the pages of a finished HTML build find them."""
    if exception is None and app.builder.format == "html":
        folder = Path(app.outdir) / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "code.js").write_text(writing.code_script(), encoding="utf-8")
        copyfile(Path(app.srcdir) / WEIGHTS, folder / "weights.js")
