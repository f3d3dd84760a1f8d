"""The checks of the notebooks: they fail when they should, and say where and by how much."""

from typing import Any, NoReturn

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lab.check import (
    assert_close,
    assert_dtype,
    assert_fraction,
    assert_gradients,
    assert_raises,
    assert_shape,
    assert_whole,
    draw,
    expect_no_error,
    parameters_of,
    unchanged,
    visible_passed,
)

CLAIM = "the two should be equal"


def said_by(check) -> str:
    """What a failing check says."""
    with pytest.raises(AssertionError) as caught:
        check()
    message = str(caught.value)
    assert message.splitlines()[0] == CLAIM
    return message


def test_equal_tensors_pass():
    assert_close(draw((2, 3)), draw((2, 3)), CLAIM)
    assert_close(draw((2, 3)).T, draw((2, 3)).T.contiguous(), CLAIM)
    assert_close(torch.tensor([torch.inf, torch.nan]), torch.tensor([torch.inf, torch.nan]), CLAIM)


def test_numbers_pass_and_fail():
    assert_close(0.5, 0.5, CLAIM)
    assert_close(torch.full((2, 3), 0.5), 0.5, CLAIM)
    assert "yours 0.5, expected 0.25" in said_by(lambda: assert_close(0.5, 0.25, CLAIM))


def test_a_difference_is_located_and_counted():
    wrong = draw((2, 3)).clone()
    wrong[1, 2] += 1e-5
    said = said_by(lambda: assert_close(wrong, draw((2, 3)), CLAIM))
    assert "at index [1, 2] (1 of 6 entries)" in said


def test_double_precision_is_held_to_more_than_single():
    x = draw((4,))
    said_by(lambda: assert_close(x + 8e-6, x, CLAIM))
    assert_close((x + 8e-6).float(), x.float(), CLAIM)


def test_a_step_in_single_precision_is_no_mistake():
    q, k = draw((2, 5, 7), (2, 6, 7))
    products = q @ k.transpose(1, 2)
    root = torch.sqrt(torch.tensor(7))
    assert root.dtype == torch.float32
    wanted = torch.softmax(products / 7**0.5, -1)
    assert_close(torch.softmax(products / root, -1), wanted, CLAIM)
    assert_close(torch.softmax((products / root).float(), -1).double(), wanted, CLAIM)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_less_precision_than_expected_is_no_larger_tolerance(dtype):
    x = draw((4,))
    said_by(lambda: assert_close(x.to(dtype), x, CLAIM))
    said_by(lambda: assert_close(x.to(dtype), x.float(), CLAIM))
    said_by(lambda: assert_close(torch.full((3,), 0.7).to(dtype), 0.7, CLAIM))
    said_by(lambda: assert_close((x + 5e-6).float(), x, CLAIM))
    assert_close(x.to(dtype), x.to(dtype) * 1.001, CLAIM)
    assert_close(x.to(dtype), x, CLAIM, atol=2e-2)
    assert_close(torch.ones(3).to(dtype), 1, CLAIM)


def test_single_precision_is_held_to_single_where_a_number_is_expected():
    assert_close(torch.full((3,), 0.7), 0.7, CLAIM)
    assert_close(torch.tensor([3.0 + 5e-6]), torch.tensor([3]), CLAIM)
    said_by(lambda: assert_close(torch.full((3,), 0.700005).double(), 0.7, CLAIM))


def test_an_empty_tensor_of_another_shape_is_none():
    assert_close(torch.empty(0, 3), torch.empty(0, 3), CLAIM)
    assert "shape (0, 2, 3), expected (2, 3)" in said_by(
        lambda: assert_close(torch.empty(0, 2, 3), torch.ones(2, 3), CLAIM)
    )
    said_by(lambda: assert_close(torch.empty(0, 3), torch.empty(3, 0), CLAIM))


def test_what_only_says_that_it_is_a_tensor_or_number_is_none():
    class Fake:
        __class__ = torch.Tensor  # pyright: ignore
        shape, dtype, device = torch.Size([2, 3]), torch.float64, torch.device("cpu")

        def detach(self):
            return torch.empty(0, 2, 3)

    class One(Fake):
        __class__ = int  # pyright: ignore

    assert "is a Fake" in said_by(lambda: assert_close(Fake(), torch.ones(2, 3), CLAIM))
    assert "is a Fake" in said_by(lambda: assert_shape(Fake(), (2, 3), CLAIM))
    assert "is a Fake" in said_by(lambda: assert_dtype(Fake(), torch.float64, CLAIM))
    assert "is a One" in said_by(lambda: assert_close(One(), 1, CLAIM))


def test_an_imaginary_part_is_not_left_out():
    x = draw((2, 3))
    said_by(lambda: assert_close(torch.complex(x, x), x, CLAIM))
    assert_close(torch.complex(x, x * 0), x, CLAIM)
    assert_close(torch.complex(x, x), torch.complex(x, x) + 1e-12, CLAIM)


def test_a_constant_factor_is_named():
    said = said_by(lambda: assert_close(3 * draw((2, 3)), draw((2, 3)), CLAIM))
    assert "Everything is 3 times what it should be" in said


def test_a_transpose_is_named():
    said = said_by(lambda: assert_close(draw((2, 3)).T, draw((2, 3)), CLAIM))
    assert "shape (3, 2), expected (2, 3)" in said
    assert "transpose" in said
    square = draw((3, 3))
    assert "transpose" in said_by(lambda: assert_close(square.T, square, CLAIM))


def test_a_wrong_shape_is_never_broadcast():
    said = said_by(lambda: assert_close(torch.zeros(1, 3), torch.zeros(2, 3), CLAIM))
    assert "shape (1, 3), expected (2, 3)" in said


def test_a_matrix_in_place_of_a_vector_is_told():
    said = said_by(lambda: assert_close(torch.ones(1, 6), torch.ones(6), CLAIM))
    assert "shape (1, 6), expected (6,)" in said


def test_nan_is_named():
    x = draw((2, 3))
    x[0, 1] = torch.nan
    assert "NaN (not a number) at index [0, 1]" in said_by(
        lambda: assert_close(x, draw((2, 3)), CLAIM)
    )


@pytest.mark.parametrize(("value", "words"), [(None, "return statement"), ([1.0], "is a list")])
def test_something_that_is_no_tensor_is_named(value, words):
    assert words in said_by(lambda: assert_close(value, draw((2, 3)), CLAIM))
    assert words in said_by(lambda: assert_shape(value, (2, 3), CLAIM))


def test_shape_and_dtype():
    assert_shape(draw((2, 3)), (2, 3), CLAIM)
    assert_dtype(draw((2, 3)), torch.float64, CLAIM)
    said_by(lambda: assert_shape(draw((2, 3)), (3, 2), CLAIM))
    said_by(lambda: assert_dtype(draw((2, 3)), torch.float32, CLAIM))


def test_the_tolerance_grows_with_large_numbers_but_whole_ones_are_exact():
    assert_close(draw((3,)) + 100.00002, draw((3,)) + 100.0, CLAIM)
    said_by(lambda: assert_close(draw((3,)) + 100.0002, draw((3,)) + 100.0, CLAIM))
    many = torch.tensor([10**9, 1])
    said_by(lambda: assert_close(many + 1, many, CLAIM))
    assert_close(torch.tensor([torch.inf, 1.0]), torch.tensor([torch.inf, 1.0]), CLAIM)


def test_gradients_are_compared_and_told_by_name():
    x, y = (t.requires_grad_() for t in draw((2, 3), (2, 3)))
    named = {"x": x, "y": y}
    assert_gradients(x * y, y * x, named, CLAIM)
    assert_gradients([x * y, x + y], [y * x, y + x], named, CLAIM)
    said = said_by(lambda: assert_gradients(x * y.detach(), x * y, named, CLAIM))
    assert "No gradient reaches y" in said
    said = said_by(lambda: assert_gradients(x * y + y.detach(), x * y + y, named, CLAIM))
    assert "This is the gradient of y" in said and "First difference" in said
    cut = [(x * y).detach(), x + y]
    said = said_by(lambda: assert_gradients(cut, [x * y, x + y], named, CLAIM))
    assert "Output 0 of yours is cut off" in said
    assert "Yours is None" in said_by(lambda: assert_gradients(None, x * y, named, CLAIM))  # pyright: ignore


def test_a_whole_number_is_no_float_and_no_tensor():
    assert_whole(12, 12, CLAIM)
    assert "Yours is 13, expected 12" in said_by(lambda: assert_whole(13, 12, CLAIM))
    said = said_by(lambda: assert_whole(12.0, 12, CLAIM))
    assert "Yours is a float (12.0), expected a whole number (int)" in said
    for wrong in (torch.tensor(12), True, None):
        said_by(lambda wrong=wrong: assert_whole(wrong, int(wrong or 0), CLAIM))


def test_a_float_is_no_tensor():
    assert_fraction(0.5, CLAIM)
    assert_fraction(np.float64(0.5), CLAIM)
    said = said_by(lambda: assert_fraction(torch.tensor(0.5), CLAIM))
    assert "Yours is a Tensor, expected a float" in said
    said_by(lambda: assert_fraction(1, CLAIM))


def test_an_answer_that_stops_is_told_by_the_claim():
    with expect_no_error(CLAIM):
        pass

    def stop(error: Exception) -> None:
        with expect_no_error(CLAIM):
            raise error

    assert "stopped with ValueError: 7 is odd" in said_by(lambda: stop(ValueError("7 is odd")))
    with pytest.raises(AssertionError, match="another claim"):
        stop(AssertionError("another claim"))
    with pytest.raises(NotImplementedError):
        stop(NotImplementedError("not answered yet"))


def test_errors_are_expected_with_their_words():
    def stop(message: str) -> None:
        raise ValueError(message)

    assert_raises(ValueError, lambda: stop("7 is odd"), CLAIM, mentions=["7"])
    assert "nothing was raised" in said_by(lambda: assert_raises(ValueError, lambda: None, CLAIM))
    said = said_by(lambda: assert_raises(ValueError, lambda: stop("odd"), CLAIM, mentions=["7"]))
    assert "should mention 7" in said


def test_an_unanswered_question_is_not_the_error_asked_for():
    def stub() -> None:
        raise NotImplementedError("not answered yet: replace this line")

    with pytest.raises(NotImplementedError):
        assert_raises(ValueError, stub, CLAIM)


def test_another_error_than_the_one_asked_for_is_told():
    said = said_by(
        lambda: assert_raises(ValueError, lambda: torch.zeros(2) @ torch.zeros(3), CLAIM)
    )
    assert "Expected a ValueError; your code stopped with RuntimeError" in said


def test_a_tiny_difference_is_told_as_such():
    eye = torch.eye(3).double()
    said = said_by(lambda: assert_close(eye + 1e-8, eye, CLAIM, atol=1e-10))
    assert "yours 1, expected 1, a difference of 1e-08" in said
    assert "times" not in said and "transpose" not in said


def test_draws_are_the_same_for_a_seed_and_leave_torchs_own_alone():
    state = torch.get_rng_state()
    a, b = draw((2, 3), (4,), seed=1)
    assert torch.equal(a, draw((2, 3), seed=1))
    assert b.shape == (4,)
    assert not torch.equal(a, draw((2, 3), seed=2))
    assert torch.equal(state, torch.get_rng_state())


def test_passing_the_visible_tests_never_claims_more(capsys):
    visible_passed()
    said = capsys.readouterr().out
    assert "Visible tests passed" in said and "all" not in said.lower()


class Fickle(nn.Module):
    """Changes its own numbers, or what it is given, when it is called."""

    def __init__(self, change: str = "") -> None:
        super().__init__()
        self.inner: Any = nn.Linear(2, 2)
        self.change = change

    def forward(self, x: Tensor) -> Tensor:
        """Return x through the linear map."""
        if self.change == "weight":
            self.inner.weight.data.zero_()
        elif self.change == "new":
            self.inner.weight = nn.Parameter(torch.zeros(2, 2))
        elif self.change == "gone":
            self.inner = nn.Identity()
        elif self.change == "input":
            x += 1
        return self.inner(x)

    def named_parameters(self, *given: object, **named: object) -> NoReturn:
        """Nobody should ask the module itself."""
        raise AssertionError("asked")


def test_a_call_that_changes_nothing_passes():
    module, x = Fickle(), draw((3, 2), dtype=torch.float32)
    x[0, 0] = torch.nan
    with unchanged(module, x, claim=CLAIM):
        module(x).sum().backward()  # gradients are no numbers of the module's


@pytest.mark.parametrize("change", ["weight", "new", "gone", "input"])
def test_a_call_that_changes_something_is_told(change: str):
    module, x = Fickle(change), draw((3, 2), dtype=torch.float32)

    def call() -> None:
        with unchanged(module, x, claim=CLAIM):
            module(x)

    what = "Tensor 0 of those that were handed in" if change == "input" else "inner.weight"
    assert f"{what} was changed by the call" in said_by(call)


def test_what_fails_inside_is_told_as_it_is():
    with pytest.raises(ZeroDivisionError), unchanged(Fickle("weight")):
        raise ZeroDivisionError


def test_parameters_are_found_whatever_the_module_says_of_them():
    module = Fickle()
    module.gain = module.inner.bias  # one parameter, by its first name
    assert [name for name, _ in parameters_of(module)] == ["gain", "inner.weight"]


def test_only_a_module_has_parameters():
    def call() -> None:
        with unchanged(None, claim=CLAIM):  # pyright: ignore[reportArgumentType]
            pass

    assert "Yours is a NoneType, expected an nn.Module" in said_by(call)


def test_nothing_is_not_equal_to_a_number():
    for expected in (0.0, torch.tensor(0.0), torch.zeros(2, 3)):
        with pytest.raises(AssertionError, match="shape"):
            assert_close(torch.zeros(0), expected, CLAIM)
    assert_close(torch.zeros(0, 3), torch.zeros(0, 3), CLAIM)
