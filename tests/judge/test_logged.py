"""What an answer logs is there for a test that listens, as in a notebook."""

from typing import Any

import pytest

from tests.judge.small_course import HIDDEN_PART, rehearsed

SHOP = """import logging
log = logging.getLogger("shop")
def buy(x):
    if x < 0:
        log.warning("negative amount %d", x)
        return False
    log.info("bought %d", x)
    return True
def fails():
    try:
        1 / 0
    except ZeroDivisionError:
        logging.exception("oops")
"""
SILENT = "def buy(x): return x >= 0\ndef fails(): pass"
LISTENS = {
    "unittest": """import unittest
class Logs(unittest.TestCase):
    def test_it(self):
        with self.assertLogs("shop", level="INFO") as told:
            buy(-1)
            buy(2)
        self.assertEqual(told.output, ["WARNING:shop:negative amount -1", "INFO:shop:bought 2"])
        with self.assertLogs() as told:
            fails()
        self.assertEqual(told.records[0].getMessage(), "oops")
        with self.assertNoLogs("shop", level="WARNING"):
            buy(1)
found = unittest.defaultTestLoader.loadTestsFromTestCase(Logs)
assert unittest.TextTestRunner(verbosity=0).run(found).wasSuccessful()""",
    "a handler": """import io, logging
told = io.StringIO()
handler = logging.StreamHandler(told)
handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
shop = logging.getLogger("shop")
shop.addHandler(handler)
shop.setLevel(logging.DEBUG)
try:
    buy(3)
    buy(-3)
finally:
    shop.removeHandler(handler)
    shop.setLevel(logging.NOTSET)
lines = told.getvalue().splitlines()
assert lines == ["INFO shop bought 3", "WARNING shop negative amount -3"]""",
}


@pytest.mark.parametrize("way", LISTENS)
@pytest.mark.parametrize("part", ["{}", HIDDEN_PART])
def test_a_test_hears_what_is_logged(task: Any, way: str, part: str) -> None:
    made = rehearsed(task([("own", SHOP), ("t_own", part.format(LISTENS[way]), 1)]))
    assert made.scores(own=SHOP) == {"t_own": 1}
    assert made.scores(own=SILENT) == {"t_own": 0}
    assert made.scores(own=SHOP.replace("log.warning", "log.error")) == {"t_own": 0}
    assert made.scores(own=SHOP.replace("log.info", "log.warning")) == {"t_own": 0}


def test_a_level_holds_where_the_answer_set_it(task: Any) -> None:
    own = "import logging\nown = logging.getLogger('own')\nown.setLevel(logging.DEBUG)\n"
    own += "def says():\n    own.debug('here')"
    test = """import logging
told = []
class Keeps(logging.Handler):
    def emit(self, record):
        told.append((record.getMessage(), record.lineno))
keeps = Keeps()
logging.getLogger("own").addHandler(keeps)
says()
logging.getLogger("own").removeHandler(keeps)
says()
assert told == [("here", 5)]"""
    made = rehearsed(task([("own", own), ("t_own", test, 1)]))
    assert made.scores(own=own) == {"t_own": 1}
    assert made.scores(own=own.replace("DEBUG", "INFO")) == {"t_own": 0}


FORGED = [  # what an answer's end could send
    "7",
    "[7, [], [1], ['shop', 20, 'bought 3']]",
    "[['shop', '20', 'bought 3', 1], ['shop', 20, b'bought 3', 1]]",
    "[['shop', 20, '%s%n%(x)d', 1]] * 3",
    "[['shop.' + str(n), -10**9, 'bought', -1] for n in range(10**4)]",
]


@pytest.mark.parametrize("told", FORGED)
def test_what_is_forged_costs_its_own_test(task: Any, told: str) -> None:
    parts = [("own", SHOP), ("t_own", LISTENS["a handler"], 1)]
    parts += [("t_more", "assert buy(1) is True", 2)]
    made = rehearsed(task(parts))
    forged = (
        "import sys\nkind = sys.modules['autograder.bridge.logged'].Logged\n"
        f"kind.leave = lambda self, answered: answered.update(logged={told})\n{SILENT}"
    )
    assert made.scores(own=forged)["t_own"] == 0
    assert made.scores(own=SHOP) == {"t_own": 1, "t_more": 2}
