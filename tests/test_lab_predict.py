"""Runs that ask for a prediction first, and cost nothing where notebooks are graded."""

import pytest

from lab.predict import compare, predicted, watched


def test_a_run_is_watched_unless_nbgrader_grades(monkeypatch: pytest.MonkeyPatch):
    for execution, expected in ((None, True), ("validate", True), ("autograde", False)):
        if execution is None:
            monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
        else:
            monkeypatch.setenv("NBGRADER_EXECUTION", execution)
        assert watched() is expected


def test_a_prediction_is_one_of_the_choices():
    assert predicted(lambda: "falls", ("falls", "rises")) == "falls"


def share() -> object:
    return "perhaps"


def unanswered() -> object:
    raise NotImplementedError("not answered yet")


@pytest.mark.parametrize("predict", [share, unanswered], ids=["none of them", "not yet"])
def test_without_a_prediction_the_run_says_what_to_do(predict):
    with pytest.raises(
        ValueError, match=f"predict first: let {predict.__name__} return one of 'a'"
    ):
        predicted(predict, ("a", "b"))


EACH = {"mask": ["lower", "higher"], "places": ["lower", "higher"]}


def test_a_dictionary_predicts_one_thing_for_each_name():
    prediction = {"places": "lower", "mask": "lower"}
    assert predicted(lambda: prediction, EACH) is prediction


@pytest.mark.parametrize(
    "prediction",
    [None, "lower", {"mask": "lower"}, {"mask": "lower", "places": "perhaps"}, {**EACH, "x": 1}],
)
def test_a_dictionary_that_leaves_something_open_is_no_prediction(prediction: object):
    def changes() -> object:
        return prediction

    says = "predict first: let changes return a dictionary of 'mask', 'places', with a choice for"
    with pytest.raises(ValueError, match=says):
        predicted(changes, EACH)


def test_both_are_shown_below_one_another(capsys: pytest.CaptureFixture[str]):
    compare("half", "0.58")
    assert capsys.readouterr().out == "predicted: half\nmeasured:  0.58\n"
