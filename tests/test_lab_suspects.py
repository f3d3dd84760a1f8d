"""Models under suspicion: the right one is right in every question, and learns its task."""

import pytest
import torch

from autograder.bridge.touched import Before
from lab.battery import shaken
from lab.suspects import GRAIN, BlackBox, Suspect, assert_judges, backwards, interrogate, learn


def sound(**sizes) -> Suspect:
    """A right model with drawn weights, in evaluation."""
    return shaken(Suspect(**sizes)).eval().requires_grad_(False)


@pytest.mark.parametrize("norm_first", [False, True])
def test_step_by_step_a_right_model_gives_its_logits(norm_first: bool):
    model = sound(norm_first=norm_first)
    source, target = backwards(model, 3, seed=1)
    off = (model.steps(source, target) - model.logits(source, target)).abs().max()
    assert off < 1e-10


def test_padding_and_company_change_nothing():
    model = sound(pad=7, bos=3, eos=9)
    source, target = backwards(model, 5, seed=2)
    together = model.logits(source, target)
    for b, row in enumerate(source):
        real = row[row != model.pad][None]
        assert (model.logits(real, target[[b]])[0] - together[b]).abs().max() < 1e-10


def test_targets_are_the_words_backwards_between_two_marks():
    model = Suspect(pad=4, bos=5, eos=6)
    for row, written in zip(*(ids.tolist() for ids in backwards(model, 20, seed=3)), strict=True):
        words = [i for i in row if i != 4]
        end = len(words) + 2
        assert written[:end] == [5, *words[::-1], 6]
        assert set(written[end:]) <= {4} and not {4, 5, 6} & {*words}


def test_it_learns():
    losses = learn(Suspect(1, width=32, heads=4, depth=1), 60)
    assert sum(losses[-10:]) < 0.6 * sum(losses[:10])


def test_a_box_is_in_training_and_its_answers_have_a_grain():
    box = BlackBox(sound())
    source, target = backwards(sound(), 2, seed=4)
    assert (box.logits(source, target) - box.logits(source, target)).abs().max() > 1e-2
    box.eval()
    off = (box.logits(source, target) - box.logits(source, target)).abs().max()
    assert 0 < off < 20 * GRAIN


def test_a_call_of_a_box_looks_through_no_model():
    """At each call the grader notes all that an object of the notebook's holds, to see changes."""
    own = type("Box", (BlackBox,), {"__module__": "__main__"})
    assert len(Before(own(sound())).parts) < 10


def accuse(model: BlackBox) -> None:
    """Accuse everybody whose pad is 2."""
    assert model.pad != 2, "padding: it is 2"


def test_all_are_asked_before_one_is_judged():
    asked = []

    def check(model: BlackBox) -> None:
        asked.append(model.pad)
        accuse(model)

    cases = ((BlackBox(sound()), "", "first"), (BlackBox(sound(pad=5)), "padding", "second"))
    with pytest.raises(AssertionError, match="first"):
        assert_judges(check, *cases)
    assert asked == [2, 5]
    assert_judges(check, (cases[0][0], "padding", "it is"), (cases[1][0], "", "it is not"))


def test_a_check_that_is_not_written_yet_is_told_apart():
    def later(model: BlackBox) -> None:
        raise NotImplementedError("not answered yet")

    said = interrogate({"one": accuse, "two": later}, {"model": BlackBox(sound())})
    assert [one.partition("\n")[0] for one in said["model"]] == ["padding: it is 2", "?"]
    with pytest.raises(NotImplementedError):
        assert_judges(later, (BlackBox(sound()), "", "it is right"))


def test_numbers_are_those_of_the_seed():
    torch.manual_seed(0)
    first = Suspect(3).output.weight
    torch.manual_seed(1)
    assert torch.equal(first, Suspect(3).output.weight)
