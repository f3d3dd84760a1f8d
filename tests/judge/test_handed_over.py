"""What a test hands over, shares with an answer and gets back."""

from typing import Any

import pytest


def test_an_answer_that_changes_its_input_is_told_so(task: Any) -> None:
    made = task(
        [
            ("double", "def double(x):\n    return x * 2"),
            ("t_double", "x = np.ones(3)\nassert (double(x) == x * 2).all()", 2),
            ("fill", "def fill(xs):\n    xs.append(1)"),
            ("t_fill", "xs = []\nfill(xs)\nassert xs == [1]", 1),
        ]
    )
    cheat = "def double(x):\n    x[:] = 0\n    return x"
    verdicts = made.verdicts(double=cheat)
    assert verdicts["t_double"].score == 0
    assert "changes what it was handed" in verdicts["t_double"].said + verdicts["t_double"].told
    assert verdicts["t_fill"].score == 1
    assert made.scores(fill="def fill(xs):\n    xs += [1]") == {"t_double": 2, "t_fill": 1}


LEFT = [  # (reference, test, an answer that changes what it was handed)
    (
        "def of(d):\n    d = collections.deque(d)\n    d.rotate(1)\n    return d",
        "d = collections.deque([1, 2])\nassert list(of(d)) == [2, 1]\nassert list(d) == [1, 2]",
        "def of(d):\n    d.rotate(1)\n    return d",
    ),
    (
        "def of(c):\n    return c + c",
        "c = collections.Counter('ab')\nassert of(c)['a'] == 2\nassert c['a'] == 1",
        "def of(c):\n    c.update(c)\n    return c",
    ),
    (
        "def of(d):\n    d = d.copy()\n    d['a'] += 1\n    return d",
        "d = collections.defaultdict(int)\nassert of(d)['a'] == 1\nassert not d",
        "def of(d):\n    d['a'] += 1\n    return d",
    ),
    (
        "def of(b):\n    return bytearray(reversed(b))",
        "b = bytearray(b'ab')\nassert of(b) == b'ba'\nassert b == b'ab'",
        "def of(b):\n    b.reverse()\n    return b",
    ),
]


@pytest.mark.parametrize(("reference", "test", "wrong"), LEFT)
def test_a_holder_of_any_kind_that_is_to_be_left_as_it_is(
    task: Any, reference: str, test: str, wrong: str
) -> None:
    given = ("table", "import collections")
    made = task([given, ("of", reference), ("t_of", test, 1)])
    assert made.scores() == {"t_of": 1}
    assert made.scores(of=wrong) == {"t_of": 0}


def test_a_right_change_of_a_holder_in_place_counts(task: Any) -> None:
    given = "import collections\ndef add(d, x):\n    d.append(x)"
    test = "d = collections.deque([1, 2], 2)\nadd(d, 3)\nassert list(d) == [2, 3]"
    made = task([("add", given), ("t_add", test, 1)])
    assert made.scores(add="def add(d, x):\n    d += [x]") == {"t_add": 1}
    assert made.scores(add="def add(d, x):\n    pass") == {"t_add": 0}


SAME = [  # (what is handed over, an answer that gives it back, the reference)
    ("[2, 1]", "return x", "return list(x)"),
    ("np.array([2, 1])", "return x", "return x.copy()"),
    ("torch.tensor([2, 1])", "return x", "return x.clone()"),
    ("collections.deque([2, 1])", "return x", "return x.copy()"),
    ("[[2], [1]]", "return x[0], x", "return list(x[0]), [list(one) for one in x]"),
    ("[[2], [1]]", "x[0].append(3)\n    return x", "return [[*x[0], 3], x[1]]"),
    ("[2, 1]", "x.sort()\n    return x", "return sorted(x)"),
    ("np.array([2, 1])", "x += 1\n    return x", "return x + 1"),
    ("torch.tensor([2, 1])", "x += 1\n    return x", "return x + 1"),
    (
        "collections.Counter([2, 1])",
        "x[2] += 1\n    return x",
        "return x + collections.Counter([2])",
    ),
]


@pytest.mark.parametrize(("value", "answer", "reference"), SAME)
def test_an_answer_may_give_back_what_it_was_handed(
    task: Any, value: str, answer: str, reference: str
) -> None:
    test = f"assert str(of({value})) == str(of({value}))"
    parts = [("table", "import collections"), ("of", f"def of(x):\n    {reference}")]
    made = task([*parts, ("t_of", test, 1)])
    assert made.scores(of=f"def of(x):\n    {answer}") == {"t_of": 1}


def test_an_answer_that_counts_its_calls_cannot_hide_it_in_what_it_was_handed(task: Any) -> None:
    test = "assert of([1]) == [1, 0]\nassert of([2]) == [2, 0]"
    made = task([("of", "def of(x):\n    return [*x, 0]"), ("t_of", test, 1)])
    assert made.scores(of="def of(x):\n    x.append(0)\n    return x") == {"t_of": 1}
    count = "n = 1\ndef of(x):\n    global n\n    x[:] = [n, 0]\n    n = 3 - n\n    return x"
    assert made.scores(of=count) == {"t_of": 0}


VIEW = "x = np.arange(6).reshape(2, 3)\nrow = of(x)\nrow[0] = 9\nassert x[0, 0] == 0"


def test_a_view_where_a_copy_is_asked_for(task: Any) -> None:
    made = task([("of", "def of(x):\n    return x[0].copy()"), ("t_of", VIEW, 1)])
    assert made.scores() == {"t_of": 1}
    assert made.scores(of="def of(x):\n    return x[0]") == {"t_of": 0}
    assert made.scores(of="def of(x):\n    return np.array(x)[0]") == {"t_of": 1}


SONGS = """\
class Songs:
    def __init__(self, songs=()):
        self.all = list(songs)
    def add(self, song):
        self.all.append(song)
    def give(self):
        return list(self.all)
"""


HANDS_OUT = SONGS.replace("return list(self.all)", "return self.all")


KEEPS_SONGS = SONGS.replace("list(songs)", "songs")


TEST_GIVEN = """\
s = Songs()
s.add("a")
given = s.give()
given.append("b")
assert s.give() == ["a"]
"""


TEST_HANDED = """\
xs = ["a"]
s = Songs(xs)
xs.append("b")
assert s.give() == ["a"]
"""


@pytest.mark.parametrize(
    ("test", "answer", "score"),
    [
        (TEST_GIVEN, HANDS_OUT, 0),
        (TEST_GIVEN, KEEPS_SONGS.replace("songs=()", "songs=None").replace("= songs", "= []"), 1),
        (TEST_HANDED, KEEPS_SONGS, 0),
        (TEST_HANDED, HANDS_OUT, 1),  # what it hands out is compared, and not changed
    ],
)
def test_a_list_that_is_shared_with_the_test_is_one_list(
    task: Any, test: str, answer: str, score: int
) -> None:
    made = task([("songs", SONGS), ("t_songs", test, 1)])
    assert made.scores() == {"t_songs": 1}
    assert made.scores(songs=answer) == {"t_songs": score}


STEP = """\
import torch
def step(m, o, x):
    o.zero_grad()
    loss = m(x).pow(2).mean()
    loss.backward()
    o.step()
    return loss
"""


TEST_STEP = """\
import torch
m = torch.nn.Linear(2, 1)
o = torch.optim.SGD(m.parameters(), lr=0.1)
x = torch.ones(4, 2)
w = m.weight.clone()
one = step(m, o, x).item()
assert step(m, o, x).item() < one
assert not torch.equal(w, m.weight)
"""


OWN_STEP = """\
import torch
def step(model, opt, x):
    opt.zero_grad()
    loss = (model(x) ** 2).mean()
    loss.backward()
    opt.step()
    return loss
"""


NO_STEP = """\
import torch
def step(m, o, x):
    return torch.tensor(0.0)
"""


def test_an_answer_that_is_asked_to_train_a_model_may_change_it(task: Any) -> None:
    made = task([("step", STEP), ("t_step", TEST_STEP, 2)])
    assert made.scores(step=OWN_STEP) == {"t_step": 2}
    assert made.scores(step=NO_STEP) == {"t_step": 0}


LEARN = """\
def learn(model, x):
    model.weight.grad = None
    ((model(x) - 1) ** 2).sum().backward()
    with torch.no_grad():
        model.weight -= 0.1 * model.weight.grad
"""


TEST_LEARN = """\
model, x = torch.nn.Linear(2, 1, bias=False), torch.ones(3, 2)
wanted = torch.nn.Linear(2, 1, bias=False)
wanted.load_state_dict(model.state_dict())
learn(model, x)
((wanted(x) - 1) ** 2).sum().backward()  # from the same batch, after the call
with torch.no_grad():
    wanted.weight -= 0.1 * wanted.weight.grad
assert torch.allclose(model.weight, wanted.weight), "the weight should go against its gradient"
"""


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        (LEARN, 2),
        ("def learn(model, x):\n    x.zero_()", 0),  # no gradient is right for no batch
        (LEARN + "    x.mul_(1)", 2),
        (LEARN + "    x.add_(1).sub_(1)", 2),
    ],
)
def test_what_the_reference_changes_is_all_that_an_answer_may_change(
    task: Any, answer: str, score: int
) -> None:
    assert task([("learn", LEARN), ("t_learn", TEST_LEARN, 2)]).scores(learn=answer) == {
        "t_learn": score
    }
