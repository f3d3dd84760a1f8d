"""What the tests of rules in whole notebooks share: rules, answers, and what is found in them."""

from autograder.judge.broken_rules import broken_rules
from autograder.judge.made_of import Place
from autograder.judge.rules import QuestionRules

SETUP = "import torch\nimport torch.nn.functional as F\nimport math\n"
RULES = QuestionRules(forbid=("torch.softmax", "sum", "sorted", "trainer.decoding", "math.prod"))
LAST = Place(9, 9)


def broken(answer: str, *others: str, names: tuple[str, ...] = (), place: Place | None = None):
    """Names found in an answer."""
    found = broken_rules(answer, RULES, others, (SETUP,), names, place)
    return list(dict.fromkeys(hit.name for hit in found))


READY = "def f(x):\n    return torch.softmax(x, -1)"
OWN = "def f(x):\n    return x.exp()"
