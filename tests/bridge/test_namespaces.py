"""No library hands on what somebody else's class holds; who wraps their own notices nothing."""

import copy
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler

from autograder.bridge import namespaces
from autograder.judge.broken_rules import broken_rules
from autograder.judge.rules import QuestionRules

KINDS = (lr_scheduler.LambdaLR, lr_scheduler.MultiplicativeLR, lr_scheduler.CyclicLR)
Own = type("Own", (), {"kept": 1, "__module__": "__main__", "__call__": lambda self, n: 0.5})


class Shown:
    """An object that shows what it is given."""

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.seen = state


@pytest.fixture
def kept() -> Iterator[None]:
    """As in a student's process."""
    code = functools.update_wrapper.__code__
    before = [vars(kind)["state_dict"] for kind in KINDS]
    namespaces.keep()
    yield
    functools.update_wrapper.__code__ = code
    for kind, method in zip(KINDS, before, strict=True):
        kind.state_dict = method


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.zeros(1)], 0.1, momentum=0.9)


def rates(function: Any) -> dict[str, Any]:
    """What a scheduler saves that goes by this."""
    made = lr_scheduler.LambdaLR(optimizer(), lambda n: 1.0)
    made.lr_lambdas = [function]
    return made.state_dict()


def cycle(function: Any) -> dict[str, Any]:
    """The same of another."""
    made: Any = lr_scheduler.CyclicLR(optimizer(), 0.1, 0.2)
    made._scale_fn_custom = function
    return made.state_dict()


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("kind", [list, torch.Tensor, math])
def test_a_namespace_of_somebody_elses_is_not_copied(kind: Any):
    shown: Any = Shown()
    functools.update_wrapper(shown, kind)
    functools.wraps(kind)(shown)
    assert vars(copy.copy(shown)).keys() == {"seen"}
    assert copy.copy(shown).seen.keys() <= {"seen", "__wrapped__", *functools.WRAPPER_ASSIGNMENTS}


@pytest.mark.usefixtures("kept")
def test_a_class_that_is_told_to_be_a_cells_own_stays_somebody_elses(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(lr_scheduler.LRScheduler, "__module__", "__main__")
    shown: Any = Shown()
    functools.update_wrapper(shown, lr_scheduler.LRScheduler)
    assert "step" not in vars(copy.copy(shown)) | copy.copy(shown).seen


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("kind", [list, torch.Tensor])
def test_no_scheduler_saves_a_class(kind: type):
    assert rates(kind)["lr_lambdas"] == [None]
    assert cycle(kind)["_scale_fn_custom"] is None


@pytest.mark.parametrize("save", [rates, cycle])
@pytest.mark.parametrize("function", [lambda n: 0.5, Own(), Own])
def test_what_schedulers_save_is_as_before(
    save: Callable[..., dict[str, Any]], function: Any, request: pytest.FixtureRequest
):
    before = save(function)
    request.getfixturevalue("kept")
    assert repr(save(function)) == repr(before)


def wrapped() -> list[Any]:
    """What functions look like that wrap something of one's own."""

    def one(n: int) -> int:
        """Explained."""
        return n

    one.kept = 1  # pyright: ignore[reportFunctionMemberAccess]
    found = [functools.wraps(one)(lambda n: n), functools.wraps(Own)(lambda n: n)]
    found += [functools.lru_cache(one), functools.update_wrapper(functools.partial(one), one)]
    return [(vars(f).keys(), f.__name__, f.__doc__, f.kept) for f in found]


def test_who_wraps_what_is_theirs_notices_nothing(request: pytest.FixtureRequest):
    before = wrapped()
    request.getfixturevalue("kept")
    assert wrapped() == before


def test_the_classes_of_which_one_is_made_are_not_asked_for():
    answer = "import torch\ndef f(x): return torch.Tensor.mro()[1]"
    rules = QuestionRules(forbid=("torch.softmax",))
    assert [hit.name for hit in broken_rules(answer, rules, (), (), ("f",))] == ["mro"]
