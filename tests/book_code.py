"""The book's own Sphinx code, imported for its tests."""

import importlib
import sys
from typing import Any

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "book" / "_ext"))
anywidget: Any = importlib.import_module("course.anywidget")
boxes: Any = importlib.import_module("course.boxes")
cards: Any = importlib.import_module("course.cards")
coverage: Any = importlib.import_module("course.coverage")
departures: Any = importlib.import_module("course.departures")
described: Any = importlib.import_module("course.described")
documents: Any = importlib.import_module("course.documents")
drawn: Any = importlib.import_module("course.drawn")
fresh: Any = importlib.import_module("course.fresh")
hidden: Any = importlib.import_module("course.hidden")
icons: Any = importlib.import_module("course.icons")
imported: Any = importlib.import_module("course.imported")
indexed: Any = importlib.import_module("course.indexed")
kernel: Any = importlib.import_module("course.kernel")
lenses: Any = importlib.import_module("course.lenses")
katex_pre: Any = importlib.import_module("katex_pre")
mutants: Any = importlib.import_module("course.mutants")
plans: Any = importlib.import_module("course.plans")
polish: Any = importlib.import_module("course.polish")
published: Any = importlib.import_module("course.published")
translator: Any = importlib.import_module("course.translator")
