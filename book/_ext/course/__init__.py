"""What this book adds to Sphinx.

Directives, each documented in its module:
    chapter-card     what a chapter teaches, and its reading time      (cards.py)
    exercise-card    what an exercise notebook holds, with a download  (cards.py)
    anywidget        an interactive figure that also works on file://  (anywidget.py)
    translator       the trained translator, loaded when asked for     (translator.py)
    trap, quiz, five what chapters show in boxes and folds             (boxes.py)
    erratum          an error of one of the five documents             (lines.py)
    inventory        what a document contains                          (lines.py)
    coverage         how many items and errors are treated             (coverage.py)
    departures       where the code departs from the paper             (departures.py)
    mutants          known mistakes, what catches and what names them  (mutants.py)
    chapters, heard, numbers   what the first page shows              (front.py)
    plan             a way through the book, with its times           (plans.py)

And thirteen services: cells run with the book's settings, not with somebody's own (kernel.py), a
page that is read is named on stderr (progress.py), a link to the glossary says on hover what its
word means (glossary.py), pictures without alternative text fail the build (polish.py), finished
pages are made lighter and more accessible (polish.py), what cells draw becomes a part of the page
(drawn.py), folded code stands below what it shows (hidden.py), a page says what it is about to
search engines (described.py), icons that no page shows are left out (icons.py), words that readers
search for lead to their sections (terms.py), the index names one thing once (indexed.py), a
published site gets what belongs to one (published.py), and a page runs again when a module has
changed that its cells import (fresh.py).
"""

from __future__ import annotations

import os
from typing import Any

from sphinx.application import Sphinx

from . import (
    anywidget,
    boxes,
    cards,
    coverage,
    departures,
    described,
    drawn,
    fresh,
    front,
    glossary,
    hidden,
    icons,
    indexed,
    kernel,
    lines,
    mutants,
    plans,
    polish,
    progress,
    published,
    terms,
    translator,
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives and services with Sphinx."""
    # The cells multiply tiny matrices. Spread over threads that wait for one another, the same work
    # took more than 20 times the processor time on a busy machine with two cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    app.add_directive("chapter-card", cards.ChapterCard)
    app.add_directive("exercise-card", cards.ExerciseCard)
    app.add_directive("anywidget", anywidget.AnyWidget)
    app.add_directive("translator", translator.Translator)
    app.add_directive("coverage", coverage.Coverage)
    app.add_directive("erratum", lines.Erratum)
    app.add_directive("inventory", lines.Inventory)
    app.add_directive("trap", boxes.Trap)
    app.add_directive("quiz", boxes.Quiz)
    app.add_directive("five", boxes.Five)
    app.add_node(boxes.fold, html=(boxes.open_fold, boxes.close_fold))
    app.add_node(boxes.fold_line, html=(boxes.open_line, boxes.close_line))
    app.add_directive("departures", departures.Departures)
    app.add_directive("mutants", mutants.Mutants)
    app.add_directive("chapters", front.Chapters)
    app.add_directive("heard", front.Heard)
    app.add_directive("numbers", front.Numbers)
    app.add_directive("plan", plans.Plan)
    app.add_transform(terms.Terms)
    app.add_config_value("course_repository", "", "html", str)
    app.connect("builder-inited", kernel.use_settings_of_the_book)
    app.connect("builder-inited", fresh.forget_stale_outputs)
    app.connect("source-read", progress.say_page)
    app.connect("doctree-read", fresh.remember_key)
    app.connect("env-get-outdated", fresh.pages_to_read_again)
    app.connect("doctree-resolved", glossary.say_on_hover)
    app.connect("doctree-resolved", polish.require_alternative_text)
    app.connect("doctree-resolved", drawn.write_into_page)
    app.connect("doctree-resolved", hidden.put_below)
    app.connect("doctree-resolved", boxes.fold_tests)
    app.connect("html-page-context", described.describe)
    app.connect("html-page-context", indexed.join_doubles)
    app.connect("html-page-context", published.say_when)
    app.connect("build-finished", published.list_pages)
    app.connect("build-finished", translator.put_scripts)
    app.connect("build-finished", polish.polish_pages)
    app.connect("build-finished", icons.cut_icons)
    return {"env_version": fresh.version(), "parallel_read_safe": True}
