"""Why the reference fails a test is said where the test does what no answer sees."""

from typing import Any

import pytest

from autograder.judge import rehearsal
from autograder.judge.out_of_sight import CALLED, DRAWN, LENT, PATCHED, PRINTED, STATE, out_of_sight

SAYS = "def says(n): print(n)"


@pytest.mark.parametrize(
    ("answer", "test", "said"),
    [
        (SAYS, "said = []\nprint = said.append\nsays(3)\nassert said == [3]", PRINTED),
        (
            "import os\ndef home(): return os.environ.get('COURSE')",
            "import os\nfrom unittest.mock import patch\n"
            "with patch.dict(os.environ, COURSE='x'):\n    assert home() == 'x'",
            PATCHED,
        ),
        (
            "def noise(): return [random.random() for _ in '123']",
            "random.seed(0)\nnoise()\nfound = random.random()\nrandom.seed(0)\nnoise()\n"
            "random.seed(0)\nassert [random.random() for _ in '1234'][3] == found",
            DRAWN,
        ),
        (
            "import decimal\ndef third(): return str(1 / decimal.Decimal(3))",
            "import decimal\nwith decimal.localcontext() as c:\n    c.prec = 2\n"
            "    assert third() == '0.33'",
            STATE,
        ),
        (SAYS, "assert says(3) == 4", ""),
    ],
)
def test_it_is_said_why_no_answer_passes(task: Any, answer: str, test: str, said: str) -> None:
    made = task([("own", answer), ("t_own", test, 1)])
    (complaint,) = rehearsal.rehearse(made.assignment, made.fork_server).complaints
    assert complaint.endswith(f").{said}")


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("import sys, io\nsys.stdin = io.StringIO('5')", ""),
        ("import threading\nthreading.Thread(target=f).start()", CALLED),
        ("import os\nos.chmod(path, 0)", LENT),
        ("import os\nos.chdir('/tmp')\nf()", STATE),
        ("f()\nassert plt.gca().get_title() == 'x'", STATE),
        ("print(f(input))", ""),
        ("input = torch.ones(3)\nassert f(input) == 3", ""),
        ("no Python", ""),
    ],
)
def test_what_no_answer_sees_is_found_in_the_text(test: str, said: str) -> None:
    assert out_of_sight(test) == said
