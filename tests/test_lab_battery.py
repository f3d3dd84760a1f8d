"""The battery: each sound module passes, each unsound one is told what is wrong, in few calls."""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from lab import battery, blocks
from lab.battery import assert_share, assert_sound, assert_sound_function, shaken
from lab.check import draw

CLAIM = "the output should be twice the linear map"


class Sound(nn.Module):
    """Twice a linear map, plus a second input; counts its calls."""

    def __init__(self, rate: float = 0.0) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("shift", torch.ones(3))
        self.dropout = nn.Dropout(rate)
        self.calls = 0
        self.double()

    def forward(self, x: Tensor, other: Tensor | None = None) -> Any:
        """Two ways from x to the result."""
        self.calls += 1
        y = self.linear(x) + self.linear(x) + self.shift
        return self.dropout(y if other is None else y + other)


def right(module: Sound) -> Any:
    """What `Sound` gives in evaluation."""
    return lambda x, other=0.0: 2 * module.linear(x) + 1 + other


def said_by(module: nn.Module, inputs: Any = None, **options: Any) -> str:
    """What the battery says of an unsound module."""
    with pytest.raises(AssertionError) as caught:
        assert_sound(module, inputs or (draw((2, 4, 3)),), **options)
    return str(caught.value)


def test_a_sound_module_passes_in_four_calls_and_three_with_a_right_answer():
    module, x = Sound(), draw((2, 4, 3))
    assert_sound(module, (x, draw((3,))))
    assert module.calls == 3  # and one backward
    module.calls = 0
    assert_sound(module, (x,), {"other": draw((3,))}, like=right(module), claim=CLAIM)
    assert module.calls == 2
    assert module.training and module.linear.weight.dtype == torch.float64


def test_what_was_looked_at_is_as_before_to_the_bit():
    module = Sound(0.5).eval()
    before = {
        name: (value, value.clone()) for name, value in module.state_dict(keep_vars=True).items()
    }
    assert_sound(module, (draw((20, 3)),), rate=0.5)
    for name, value in module.state_dict(keep_vars=True).items():
        assert value is before[name][0] and torch.equal(value, before[name][1]), name
        assert value.grad is None
    assert not module.training


def test_gradients_that_were_there_stay():
    module, x = Sound(), draw((2, 4, 3))
    module(x).sum().backward()
    before = [p.grad.clone() for p in module.parameters()]  # pyright: ignore
    assert_sound(module, (x,))
    for parameter, gradient in zip(module.parameters(), before, strict=True):
        assert parameter.grad is not None and parameter.grad.dtype == torch.float64
        assert torch.equal(parameter.grad, gradient)


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_blocks_are_sound(norm_first: bool):
    x, memory = draw((2, 4, 6), (2, 5, 6))
    encoder = blocks.EncoderLayer(6, 2, 8, dropout=0.0, norm_first=norm_first).double()
    decoder = blocks.DecoderLayer(6, 2, 8, dropout=0.3, norm_first=norm_first).double()
    assert_sound(encoder, (x, torch.ones(4, 4, dtype=torch.bool).tril()))
    assert_sound(decoder, (x, memory, None), {"memory_mask": None}, rate=0.3)
    assert_sound(blocks.MultiHeadAttention(6, 2).double(), (x, memory, memory))
    assert_sound(blocks.TokenEmbedding(7, 6), (torch.arange(7).view(1, 7),))


def test_single_precision_inside_is_no_mistake():
    class Single(Sound):
        def forward(self, x, other=None):
            return super().forward(x, other).float().to(x.dtype)

    assert_sound(Single(), (draw((2, 4, 3)),))


def test_a_wrong_value_says_the_tests_own_claim():
    module = Sound()
    said = said_by(module, like=lambda x: 3 * module.linear(x), claim=CLAIM)
    assert said.splitlines()[0] == CLAIM
    assert "First difference" in said


def test_one_sentence_may_stand_before_every_message():
    module, says = Sound(), "the module should hold in both modes"
    said = said_by(module, like=lambda x: 3 * module.linear(x), claim=CLAIM, says=says)
    assert said.splitlines()[:2] == [says, CLAIM]


@pytest.mark.unchecked
def test_none_and_no_module_are_told():
    class Nothing(Sound):
        def forward(self, x, other=None):
            return None

    assert "return statement" in said_by(Nothing())
    nothing: Any = max
    assert "expected an nn.Module" in said_by(nothing)


def test_changes_of_the_inputs_are_told():
    class Changes(Sound):
        def forward(self, x, other=None):
            x += 1
            return super().forward(x, other)

    said = said_by(Changes())
    assert said.startswith(battery.KEPT) and "Input 0" in said


def test_changes_of_the_state_are_told():
    class Counts(Sound):
        def forward(self, x, other=None):
            self.shift = self.shift + 1
            return super().forward(x, other)

    said = said_by(Counts())
    assert said.startswith(battery.STATE) and "shift" in said


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_dtype_of_its_own_is_told(kind: torch.dtype):
    class Fixed(Sound):
        def forward(self, x, other=None):
            return super().forward(x, other).to(kind)

    wanted = battery.DOUBLE if kind == torch.float32 else battery.SINGLE
    assert said_by(Fixed()).startswith(wanted)


def test_a_copy_beside_the_buffer_is_told():
    class Beside(Sound):
        def __init__(self):
            super().__init__()
            self.copy = [self.shift]

        def forward(self, x, other=None):
            return super().forward(x, other) + self.copy[0]

    assert said_by(Beside()).startswith(battery.SINGLE)


def test_what_is_used_in_training_only_is_told():
    class InTraining(Sound):
        def forward(self, x, other=None):
            y = super().forward(x, other)
            return y + x if self.training else y

    assert said_by(InTraining()).startswith(battery.MODES)


def test_statistics_kept_for_evaluation_are_told():
    class Running(Sound):
        def forward(self, x, other=None):
            if self.training:
                self.mean = x.mean().detach()
            return super().forward(x, other) - self.mean

    module = Running()
    module(draw((2, 4, 3), seed=1))
    module.mean = module.mean + 1
    assert said_by(module).startswith(battery.MODES)


def test_dropout_that_never_drops_or_always_does_is_told():
    class Always(Sound):
        def forward(self, x, other=None):
            return nn.functional.dropout(super().forward(x, other), 0.5)

    x = (draw((20, 3)),)
    torch.manual_seed(0)
    assert said_by(Sound(), x, rate=0.5).startswith(battery.DROPS)
    assert said_by(Always(), x).startswith(battery.SLOPES)
    always = Always()
    assert said_by(always, x, rate=0.5, like=right(always), claim=CLAIM).startswith(CLAIM)


def test_dropout_that_drops_the_same_in_each_call_is_told():
    class Seeded(Sound):
        def forward(self, x, other=None):
            torch.manual_seed(3)
            return super().forward(x, other)

    seeded = Seeded(0.5)
    assert said_by(seeded, (draw((20, 3)),), rate=0.5).startswith(battery.ANEW)


def test_gradients_that_do_not_arrive_are_told():
    class Cut(Sound):
        def forward(self, x, other=None):
            return super().forward(x.detach(), other)

    class Fixed(Sound):
        def forward(self, x, other=None):
            return nn.functional.linear(x, self.linear.weight.data) + self.linear.bias

    assert "Input 0 gets no gradient" in said_by(Cut())
    assert "linear.weight gets no gradient" in said_by(Fixed())
    module = Sound()
    module.register_parameter("spare", nn.Parameter(torch.ones(2)))
    assert "spare gets no gradient" in said_by(module)
    assert_sound(module, (draw((2, 3)),), idle=("spare",))


@pytest.mark.parametrize("told", [False, True])
def test_one_way_of_two_that_is_cut_off_is_told(told: bool):
    class Half(Sound):
        def forward(self, x, other=None):
            return self.linear(x) + self.linear(x.detach()) + self.shift

    module = Half()
    like = right(module) if told else None
    said = said_by(module, like=like, claim=CLAIM)
    assert said.startswith(battery.SLOPES)
    assert ("the gradient of Input 0" in said) == told


def test_one_output_of_two_that_is_cut_off_is_told():
    class Aside(Sound):
        def forward(self, x, other=None):
            y = self.linear(x)
            return y, y if other is None else y.detach()

    module, x = Aside(), draw((2, 4, 3))
    assert_sound(module, (x,))
    seen = torch.ones(2, dtype=torch.bool)
    said = said_by(module, (x, seen))
    assert said == f"{battery.SLOPES}\nOutput 1 is cut off from all that it comes from."


def test_a_module_that_names_no_parameters_is_shaken_like_any_other():
    class Silent(nn.Linear):
        """Says that it has none."""

        def named_parameters(self, *given: object, **named: object) -> Any:
            """Nothing."""
            return iter(())

    assert shaken(Silent(2, 2)).bias.abs().min() > 0
    assert torch.equal(shaken(Silent(2, 2)).weight, shaken(nn.Linear(2, 2)).weight)


def test_shaken_numbers_depend_on_names_alone():
    class Turned(nn.Module):
        def __init__(self, names: str):
            super().__init__()
            for name in names:
                self.add_module(name, nn.Linear(3, 3) if name == "a" else nn.LayerNorm(3))

    one, other = shaken(Turned("ab")), shaken(Turned("ba"))
    for name, parameter in one.named_parameters():
        assert torch.equal(parameter, other.get_parameter(name))
        assert parameter.dtype == torch.float64
    assert one.b.weight.mean() > 0.5 > one.b.bias.mean()
    assert len({*one.b.weight.tolist(), *one.b.bias.tolist()}) == 6
    assert not torch.equal(shaken(Turned("ab"), seed=1).a.weight, one.a.weight)


def mixed(x: Tensor, weights: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
    """A right function of two results."""
    hidden = weights.masked_fill(~shown, 0)
    return hidden @ x, hidden


def changed_in_place(x: Tensor, weights: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
    return mixed(x, weights.mul_(shown), shown)


FUNCTION_SLIPS = {
    battery.KEPT: (changed_in_place,),
    battery.SAME_DTYPE: (lambda *given: [one.double() for one in mixed(*given)],),
    battery.SLOPES: (
        lambda x, *given: mixed(x.detach(), *given),
        lambda *given: (mixed(*given)[0], mixed(*given)[1].detach()),
        lambda *given: [one.detach() for one in mixed(*given)],
    ),
    CLAIM: (lambda *given: mixed(*given)[0], lambda *given: [2 * one for one in mixed(*given)]),
}


@pytest.mark.parametrize("says", ["", "all in one sentence"])
@pytest.mark.parametrize(
    ("first", "function"), [(one, f) for one, every in FUNCTION_SLIPS.items() for f in every]
)
def test_a_function_that_slips_is_told_how(says: str, first: str, function: Any):
    x, weights = draw((2, 4, 3), (2, 5, 4), dtype=torch.float32)
    given = x, weights, weights > -0.3
    assert_sound_function(mixed, given, like=mixed, claim=CLAIM, says=says)
    with pytest.raises(AssertionError) as caught:
        assert_sound_function(function, given, like=mixed, claim=CLAIM, says=says)
    first = f"{says}\n{first}" if says and first != CLAIM else first
    assert str(caught.value).startswith(f"{first}\n")


class Mixed(NamedTuple):
    """Two results with names."""

    output: Tensor
    weights: Tensor


def test_results_may_have_names():
    x, weights = draw((2, 4, 3), (2, 5, 4), dtype=torch.float32)
    given = x, weights, weights > -0.3
    assert_sound_function(lambda *h: Mixed(*mixed(*h)), given, like=mixed, claim=CLAIM)
    with pytest.raises(AssertionError, match=CLAIM):
        assert_sound_function(lambda *h: Mixed(*h[:2]), given, like=mixed, claim=CLAIM)


def test_a_function_is_called_once_and_needs_no_gradient_where_the_right_one_has_none():
    calls = []

    def measured(x: Tensor) -> Tensor:
        calls.append(x)
        return x.detach().norm()

    x = draw((2, 4, 3)).transpose(0, 1)
    assert_sound_function(measured, [x], like=lambda x: x.detach().norm(), claim=CLAIM)
    assert len(calls) == 1 and calls[0].stride() == x.stride()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda parts, rows: parts.pop("half"),
        lambda parts, rows: parts.update(half=parts["twice"]),
        lambda parts, rows: rows.append(3),
        lambda parts, rows: rows.reverse(),
    ],
)
def test_a_function_that_changes_a_dictionary_or_list_is_told_so_and_the_test_keeps_its_own(spoil):
    def right(x: Tensor, parts: Any, rows: list[int]) -> Tensor:
        return parts["half"](x)[rows]

    def spoiling(x: Tensor, parts: Any, rows: list[int]) -> Tensor:
        result = right(x, parts, rows)
        spoil(parts, rows)
        return result

    parts, rows = {"half": lambda x: x / 2, "twice": lambda x: 2 * x}, [0, 2]
    given = draw((3, 4), dtype=torch.float32), parts, rows
    assert_sound_function(right, given, like=right, claim=CLAIM)
    with pytest.raises(AssertionError) as caught:
        assert_sound_function(spoiling, given, like=right, claim=CLAIM)
    assert str(caught.value).startswith(f"{battery.KEPT}\nInput ")
    assert list(parts) == ["half", "twice"] and rows == [0, 2]


@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_the_share_of_what_is_dropped_is_told_from_another_one(rate: float):
    torch.manual_seed(0)
    dropped = nn.functional.dropout(torch.ones(1600), rate) == 0
    assert_share(dropped, rate, CLAIM)
    with pytest.raises(AssertionError, match=CLAIM):
        assert_share(dropped, rate + 0.1, CLAIM)
