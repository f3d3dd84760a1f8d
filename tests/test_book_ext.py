"""The book's own Sphinx code: what its directives read, and what they refuse."""

import json
from functools import partial
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from fontTools.ttLib import TTFont
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from matplotlib import get_data_path

from tests.book_code import (
    anywidget,
    cards,
    departures,
    fresh,
    icons,
    imported,
    katex_pre,
    mutants,
    plans,
    polish,
)
from tests.conftest import ROOT

PAGE = """\
---
jupytext: {text_representation: {extension: .md}}
---

(label)=
# Four words of title

% covers: S0.1

Two words and $x + y$.

```{note}
:class: wide
three more words
```

```{code-cell} python
:tags: [hide-input]
print("not read")
```

```text
not read either
```

$$
a = b
$$ (eq-name)
"""


def test_reading_counts_prose_and_cells_only():
    page = cards.reading(PAGE)
    assert (page.words, page.cells) == (4 + 4 + 3, 1)  # "Two words and formula" are four


@pytest.mark.parametrize(
    ("words", "cells", "lines", "minutes"),
    [(0, 0, 0, 5), (1800, 0, 0, 10), (1800, 6, 0, 15), (1800, 6, 300, 25)],
)
def test_the_time_counts_words_cells_and_the_code_in_sight(
    words: int, cells: int, lines: int, minutes: int
):
    assert cards.Reading(words, cells, lines).minutes == minutes


def test_folded_code_takes_no_time():
    cell = "```{code-cell} python\n---\ntags: [hide-input]\n---\na = 1\n```\n"
    assert cards.reading(cell).lines == 0
    assert cards.reading(cell.replace("hide-input", "")).lines == 1


def notebook(path: Path, *cells: tuple[str, str, dict[str, Any]]) -> Path:
    """Write a notebook of (kind, source, nbgrader mark) cells."""
    written = [
        {"cell_type": kind, "source": source, "metadata": {"nbgrader": mark} if mark else {}}
        for kind, source, mark in cells
    ]
    path.write_text(json.dumps({"cells": written}), encoding="utf-8")
    return path


def test_an_exercise_is_read_from_headings_and_marks(tmp_path: Path):
    test = {"grade": True, "solution": False, "points": 3}
    essay = {"grade": True, "solution": True, "points": 2}
    path = notebook(
        tmp_path / "a.ipynb",
        ("markdown", "## 3.1 Scores   (3 points, about 10 minutes, difficulty 1 of 5)\nText", {}),
        ("code", "answer", {"grade": False, "solution": True}),
        ("code", "test", test),
        ("markdown", "## 3.2 Why   (2 points, about 5 minutes, difficulty 4 of 5)", {}),
        ("markdown", "answer", essay),
    )
    exercise = cards.read_exercise(path)
    assert [q.title for q in exercise.questions] == ["Scores", "Why"]
    assert (exercise.tested, exercise.by_hand, exercise.minutes) == (3, 2, 15)


def test_a_notebook_without_questions_is_refused_with_an_example(tmp_path: Path):
    path = notebook(tmp_path / "empty.ipynb", ("markdown", "# Title", {}))
    with pytest.raises(ValueError, match=r"empty.ipynb has no question; .*about 15 minutes"):
        cards.read_exercise(path)


def test_a_module_is_bound_and_its_data_cannot_end_the_script():
    html = anywidget.inline(
        "one", "export default {};\nconst s = '</script>';\n", {"k": "</script>"}
    )
    assert "const widget = {};" in html
    assert html.count("</script>") == 1
    assert 'id="one"' in html and "needs JavaScript" in html


def test_what_figures_share_is_bound_once_in_a_scope_of_its_own():
    html = anywidget.inline(
        "one",
        "const make = 2;\nexport default { make };\n",
        {},
        "const make = 1;\nexport default { make };\n",
    )
    assert "const course = (() => {\nconst make = 1;\nreturn { make };\n})();" in html
    assert "const make = 2;\nconst widget = { make };" in html


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("const a = 1;", "0 lines that begin with 'export default'"),
        ("export default {};\nexport default {};", "2 lines"),
        ('import x from "y";\nexport default {};', "imports"),
        ("export const a = 1;\nexport default {};", "named exports"),
    ],
)
def test_a_module_that_cannot_be_inlined_is_refused(source: str, says: str):
    with pytest.raises(anywidget.WidgetError, match=says):
        anywidget.bind_module(source)


def test_bad_json_is_refused_with_its_line():
    with pytest.raises(anywidget.WidgetError, match="not JSON") as caught:
        anywidget.read_values('{\n"a": 1,\n"b" 2\n}')
    assert caught.value.line == 2
    with pytest.raises(anywidget.WidgetError, match="JSON object"):
        anywidget.read_values("[1]")
    assert anywidget.read_values("") == {}


SOURCE = """\
# %% solution="norm" export
class Norm:
    def forward(self, x):
        # departs: the paper normalises after the sum;
        # before it, training is steadier. paper: test_after
        return x

    def other(self):
        return 1  # departs: short


# departs: one more
def alone():
    return 2
"""


def test_departures_name_the_function_and_the_whole_reason():
    assert departures.departures_in(SOURCE, "05") == [
        departures.Departure(
            "05",
            "Norm.forward",
            "the paper normalises after the sum; before it, training is steadier.",
            "test_after",
        ),
        departures.Departure("05", "Norm.other", "short", ""),
        departures.Departure("05", "alone", "one more", ""),
    ]


def test_a_mark_inside_a_string_is_no_departure():
    assert departures.departures_in('text = "# departs: no"\n', "05") == []


def test_departures_are_found_in_all_solutions(tmp_path: Path):
    (tmp_path / "solutions" / "05_norm").mkdir(parents=True)
    (tmp_path / "solutions" / "05_norm" / "05_norm.py").write_text(SOURCE, encoding="utf-8")
    assert len(departures.find_departures(tmp_path)) == 3


def test_the_fingerprint_changes_with_content_and_name(tmp_path: Path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("a", encoding="utf-8")
    two.write_text("a", encoding="utf-8")
    digests = {fresh.digest([one]), fresh.digest([two]), fresh.digest([one, two])}
    one.write_text("b", encoding="utf-8")
    digests.add(fresh.digest([one]))
    assert len(digests) == 4
    assert fresh.digest([tmp_path / "absent.py"]) == fresh.digest([])


def test_what_writes_all_pages_decides_the_version():
    assert ROOT / "book" / "_vendor" / "katex.min.js" in fresh.extension_files()


IMPORTING = """# Sums

```{code-cell} python
:tags: [hide-input]
from pathlib import Path
import numpy
from kit import plots
RECORDS = Path("../bench/records")
```

```python
from kit import shown_only
```

````{code-cell} python
---
tags: [hide-input]
---
def later():
    from school.training import step
````
"""


MODULES = {
    "kit/__init__.py": "",
    "kit/plots.py": "from kit.colours import RED",
    "kit/colours.py": "RED = 1",
    "kit/unused.py": "",
    "kit/shown_only.py": "",
    "school/__init__.py": "",
    "school/training.py": "from .loop import step",
    "school/loop.py": "def step():\n    import school.decoding.search",
    "school/decoding/__init__.py": "",
    "school/decoding/search.py": "from ..text import *\nfrom . import beam",
    "school/decoding/beam.py": "",
    "school/text.py": "",
    "school/commands.py": "import school.training",
    "bench/__init__.py": "",
    "bench/records/one.jsonl": "{}",
    "requirements/book.txt": "numpy==1",
}


DECISIVE = {name for name in MODULES if not name.startswith(("kit/unused", "kit/shown", "bench/_"))}


DECISIVE -= {"school/commands.py"}


@pytest.fixture
def small_book(tmp_path: Path) -> Path:
    """A project with a page whose cells import some of its modules, and one without cells."""
    for name, text in {**MODULES, "book/sums.md": IMPORTING, "book/prose.md": "# Prose\n"}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", MODULES)
def test_a_page_is_executed_again_only_for_what_its_cells_reach(small_book: Path, name: str):
    page = small_book / "book" / "sums.md"
    before = fresh.page_key(page, small_book)
    assert fresh.page_key(page, small_book) == before
    path = small_book / name
    path.write_text(path.read_text(encoding="utf-8") + "\n# touched\n", encoding="utf-8")
    assert (fresh.page_key(page, small_book) != before) == (name in DECISIVE)
    assert fresh.page_key(small_book / "book" / "prose.md", small_book) == ""


def test_pages_of_this_book_depend_on_what_they_import():
    def files(page: str) -> set[str]:
        found = imported.decisive_files(ROOT / "book" / page, ROOT)
        return {path.relative_to(ROOT).as_posix() for path in found}

    diagrams = {"lab/__init__.py", "lab/diagrams.py", "lab/plots.py"}
    assert files("03_attention.md") == diagrams
    assert {"lab/five_minutes.py", "lab/corpus.py", "lab/words.py"} <= files("10_full_model.md")
    training = files("training.md")
    assert {"trainer/report.py", "benchmarks/results/bench.jsonl"} <= training
    assert not {"lab/check.py", "trainer/loop.py", "benchmarks/peers.py"} & training
    for page in ROOT.glob("book/*.md"):
        assert page.stem == "training" or not any(
            name.startswith(("trainer/", "benchmarks/")) for name in files(page.name)
        ), page


def test_only_the_outputs_of_stale_pages_are_forgotten(
    small_book: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fresh, "page_key", partial(fresh.page_key, root=small_book))
    book = small_book / "book"
    other = "```{code-cell} python\nimport kit.unused\n```\n"
    (book / "other.md").write_text(other, encoding="utf-8")
    config = SimpleNamespace(nb_execution_cache_path="")
    app = SimpleNamespace(outdir=book / "_build" / "html", srcdir=book, config=config)
    fresh.forget_stale_outputs(app)
    cache = get_cache(book / "_build" / ".jupyter_cache")
    for page in ("sums", "other"):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(page)])
        bundle = CacheBundleIn(notebook, str(book / f"{page}.md"))
        cache.cache_notebook_bundle(bundle, check_validity=False)

    def kept() -> set[str]:
        return {Path(str(record.uri)).stem for record in cache.list_cache_records()}

    fresh.forget_stale_outputs(app)
    assert kept() == {"sums", "other"}
    (small_book / "kit" / "unused.py").write_text("x = 1", encoding="utf-8")
    fresh.forget_stale_outputs(app)
    assert kept() == {"sums"}
    (small_book / "requirements/book.txt").write_text("numpy==2", encoding="utf-8")
    fresh.forget_stale_outputs(app)
    assert kept() == set()


@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("A line that falls.", True),
        ("", False),
        ("figure", False),
        ("_images/ab.png", False),
        ("a b c.png", False),
    ],
)
def test_alternative_text_must_say_something(text: str, real: bool):
    assert polish.is_real(text, "folder/a b c.png") is real


def test_repairs_do_nothing_the_second_time():
    page = (
        "<!-- So that users can add custom icons -->\n"
        '<script defer src="_static/scripts/fontawesome.js?digest=1"></script>'
        '<button class="sidebar-toggle x" title="Toggle">'
        '<summary aria-label="Toggle hidden content">'
    )
    once = polish.repair(page)
    assert once == '<button class="sidebar-toggle x" title="Toggle" aria-label="Toggle"><summary>'
    assert polish.repair(once) == once


SEARCHING = "".join(
    f'<script src="{name}.js"></script>\n'
    for name in ("_static/searchtools", "_static/language_data", "searchindex")
)


@pytest.mark.parametrize("after", ["</head>", "\n  \n</head>"])
def test_a_page_does_not_load_the_words_of_all_pages(after: str):
    assert polish.repair(f"<p>\n{SEARCHING}{after}") == f"<p>\n{after}"


def test_the_page_of_the_search_loads_them():
    page = f'{SEARCHING}<link rel="icon"></head>'
    assert polish.repair(page) == page


@pytest.mark.parametrize(
    ("text", "asked"),
    [("<p>", ["serif"]), ('<p class="katex"><i class="mathnormal">', ["serif", "Main", "Math"])],
)
def test_a_page_asks_for_its_letters_before_its_style_sheets(text: str, asked: list[str]):
    sheet = '<link rel="stylesheet" href="../_static/course.css?v=1">'
    page = polish.repair(f"<head>{sheet}</head>{text}")
    spread, script, rest = page.split("</script>\n")
    assert spread == "<head>" + polish.SPREAD.removesuffix("</script>\n")
    assert rest == f"{sheet}</head>{text}"
    assert [name for name in ("serif", "Main", "Math") if name in script] == asked
    assert "`../_static/${name}.woff2`" in script
    assert polish.repair(page) == page


def test_the_letters_that_are_asked_for_early_are_those_of_the_style_sheets():
    static = ROOT / "book" / "_static"
    told = "".join(sheet.read_text("utf-8") for sheet in static.rglob("*.css"))
    for name in polish.LETTERS.values():
        assert (static / f"{name}.woff2").is_file()
        assert f"url({name[name.index('fonts/') :]}.woff2)" in told


def test_a_name_in_a_table_breaks_at_its_joints():
    name = '<code><span class="pre">judge/own_part.Part.__init__</span></code>'
    broken = name.replace("/own_part.Part.", "/<wbr>own_<wbr>part.<wbr>Part.<wbr>")
    page = f"{name}<table>{name}</table>"
    assert polish.repair(page) == f"{name}<table>{broken}</table>"
    assert polish.repair(polish.repair(page)) == polish.repair(page)


def test_only_icons_that_are_asked_for_keep_their_rule():
    one, other = '.fa-sun:before{content:"\\f185"}', '.fa-a:before,.fa-b:before{content:"\\f001"}'
    sheet = 'p{content:"\\f002"}'
    assert icons.without_unused(sheet + one + other, {"sun"}) == sheet + one
    assert icons.without_unused(sheet + one + other, {"b"}) == sheet + other


def test_icons_are_found_by_number_and_as_they_are():
    assert icons.characters('a{--i:"\uf058"} b{content:"\\f071"} c{color:"red"}') == {
        0xF058,
        0xF071,
    }


def test_a_font_keeps_what_is_asked_for():
    whole = Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf").read_bytes()
    cut = icons.only(whole, {ord("a"), ord("√"), 0xF071})
    assert len(cut) < 5000
    assert set(TTFont(BytesIO(cut)).getBestCmap() or {}) == {ord("a"), ord("√")}


def test_a_formula_breaks_between_its_parts_only():
    katex = katex_pre.Katex({})
    try:
        html = katex.render("a + b = c", display=False)
    finally:
        katex.close()
    assert html.count(katex_pre.BASE) == 3
    broken = katex_pre.breakable(html)
    assert broken.count("<wbr>" + katex_pre.BASE) == 2
    assert broken.replace("<wbr>", "") == html
    assert katex_pre.breakable("<code>x</code>") == "<code>x</code>"


def test_katex_draws_formulas_and_names_what_it_cannot():
    katex = katex_pre.Katex({"\\R": "\\mathbb{R}"})
    try:
        inline = katex.render(r"Q \in \R^{N \times d_k}", display=False)
        assert "katex-html" in inline and "<math" in inline
        assert "katex-display" in katex.render("a = b", display=True)
        with pytest.raises(katex_pre.TexError, match=r"\\foo"):
            katex.render(r"\foo", display=False)
    finally:
        katex.close()


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        ("a = b", "a = b"),
        (r"a &= b \\ c &= d", r"\begin{split}a &= b \\ c &= d\end{split}"),
        (r"\begin{aligned}a \\ b\end{aligned}", r"\begin{aligned}a \\ b\end{aligned}"),
        ("a = b\n\nc = d", r"\begin{aligned}a = b\\c = d\end{aligned}"),
    ],
)
def test_line_breaks_of_a_display_are_kept(text: str, tex: str):
    assert katex_pre.one_display(text) == tex


# the table of mistakes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Plain words.", "Plain words."),
        ("`x` needs `.mT`, not `.T`", "<x> needs <.mT>, not <.T>"),
        ("a ` on its own", "a ` on its own"),
        ("", ""),
    ],
)
def test_what_stands_between_backticks_is_code(text, expected):
    made = mutants.with_code(text)
    parts = [f"<{n.astext()}>" if n.tagname == "literal" else n.astext() for n in made.children]
    assert "".join(parts) == expected


@pytest.mark.parametrize(
    ("minutes", "said"), [(0, "–"), (45, "45 min"), (60, "1 h"), (125, "2 h 5 min")]
)
def test_a_time_is_said_in_hours_and_minutes(minutes: int, said: str):
    assert plans.clock(minutes).replace("\N{NO-BREAK SPACE}", " ") == said
