"""What tells that random numbers were drawn: every draw shows, and what is told can be taken over.

Python's generator is looked at where its words lie in memory, if they lie there as is known.
"""

import random

import pytest

from autograder.bridge import rng
from autograder.bridge.wire import Frame


@pytest.fixture(params=["in memory", "as told"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "as told":
        monkeypatch.setattr(rng, "IN_MEMORY", None)
    return request.param


DRAWS = {
    "a number": random.random,
    "half of a pair": lambda: random.gauss(0, 1),
    "few bits": lambda: random.getrandbits(3),
    "a seed": lambda: random.seed(5),
    "words anew": lambda: [random.random() for _ in range(400)],
}


def test_the_words_lie_where_they_are_looked_for() -> None:
    assert rng._layout() is not None, "a Python that keeps them elsewhere is slower, not wrong"


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_each_draw_is_told(draw) -> None:
    random.seed(3)
    follower = rng.Follower()
    follower.arrive(Frame(), None)
    assert "python" not in follower.used()
    draw()
    assert "python" in follower.used()
    assert "python" not in follower.used()


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_state_that_is_taken_over_goes_on_with_the_same_numbers(draw) -> None:
    random.seed(3)
    draw()
    frame = Frame()
    news = rng.Follower().leave(frame)
    wanted = random.getstate(), [random.gauss(0, 1), random.random()]
    random.seed(9)
    rng.Follower().arrive(frame, news)
    assert (random.getstate(), [random.gauss(0, 1), random.random()]) == wanted


def test_an_answer_cannot_hide_a_draw_by_another_function(monkeypatch: pytest.MonkeyPatch) -> None:
    follower = rng.Follower()
    follower.arrive(Frame(), None)
    still = random.getstate()
    monkeypatch.setattr(random, "getstate", lambda: still)
    random.random()
    assert "python" in follower.used()
