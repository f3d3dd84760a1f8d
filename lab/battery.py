"""The battery: what holds of every module of this course, checked in as few calls as possible.

A chapter's tests hand a module and its inputs to `assert_sound` once, best where they compare its
output with what it should be. Each call of the module by a test costs milliseconds when notebooks
are graded: the battery makes three, one more where it has nothing to compare gradients with, one
more where something is dropped, and another one where nothing says then what evaluation gives.
`assert_sound_function` is the same for a function, in one call.
"""

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from lab.check import (
    TOLERANCE,
    assert_close,
    assert_dtype,
    assert_gradients,
    assert_shape,
    draw,
    parameters_of,
)

STEP = 1e-4  # how far inputs are moved to see what the output does
SLACK = 0.03  # what the gradient may be off then, as a part of its size
ROUGH = 1e-3  # between two precisions, as a part of the largest number

KEPT = "what is handed in should stay as it is: make new tensors in place of changing it"
STATE = "a call should leave the module's parameters and buffers as they are"
SINGLE = "a module turned to float32 should give float32 out for float32 in"
DOUBLE = "a module turned to float64 should give float64 out for float64 in"
MODES = "with nothing to drop, a module should give in training what it gives in evaluation"
DROPS = "in training, dropout should change the output"
ANEW = "in training, each call should drop other numbers: set no seed in it"
STILL = "in evaluation nothing should be dropped, so two calls should give the same"
REACHES = "the gradient should reach every input and every parameter, or they never learn"
SLOPES = "the gradient should follow every way from the inputs to the output: is a part cut off?"
SAME_DTYPE = "what comes out should have the dtype of what goes in"


def shaken(module: nn.Module, seed: int = 0) -> Any:
    """The module in float64 with numbers of our own, so that no gain is 1 and no bias is 0.

    They depend on the parameters' names alone: neither on what was drawn before nor on the order
    in which the module was put together.
    """
    module.double()
    with torch.no_grad():
        for name, parameter in parameters_of(module):
            own = zlib.crc32(f"{name} {seed}".encode())
            start = parameter.mean().round() if parameter.ndim == 1 else 0  # 1 where a gain is
            parameter.copy_(start + 0.4 * draw(tuple(parameter.shape), seed=own))
    return module


def assert_sound(
    module: nn.Module,
    inputs: Sequence[Any],
    named: Mapping[str, Any] | None = None,
    *,
    like: Callable[..., Any] | None = None,
    claim: str = "the output should be right",
    says: str = "",
    rate: float = 0.0,
    idle: Sequence[str] = (),
) -> None:
    """Fail unless a module does what every module should.

    Its inputs and its own state stay as they are. A module and inputs in float64 give float64, and
    the same ones in float32 give float32. Training gives what evaluation gives, but for dropout.
    The gradient reaches every parameter and every input with a fraction, on every way, and it comes
    from every output.

    Args:
        module: it may be in either mode, and is left in the one that it was in.
        inputs: what it is called with; tensors with fractions get a gradient, anything else, such
            as ids, masks and None, is handed on as it is.
        named: what it is called with by name, treated alike.
        like: gives, called in the same way, the output in evaluation; its gradients are compared
            too, if it has any. It runs in this process, so it may be called at no cost.
        claim: one sentence that says what `like` stands for; first line of the message where the
            outputs differ.
        says: one sentence that sums all of this up for this module; if given, first line of every
            message. The grader repeats only sentences that stand in the test's own cell.
        rate: the probability of dropping with which the module was made.
        idle: names of parameters that rightly get no gradient.
    """
    __tracebackhide__ = True
    with _headed(says):
        _sound(module, _Inputs(inputs, named or {}), like, claim, rate, idle)


def assert_sound_function(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    like: Callable[..., Any],
    claim: str,
    says: str = "",
) -> None:
    """Fail unless a function does what a right one does; it is called once.

    What it is handed stays as it is, and its results have the numbers and dtypes of the right ones.
    Where those have gradients, the same ones reach every input with a fraction, from every result.

    Args:
        function: it is called with `inputs` alone; hand it inputs in float32, since an answer that
            always gives float64 cannot be told from a right one by others.
        inputs: tensors with fractions get a gradient, anything else is handed on as it is.
        like: the right one. It runs in this process, so it may be called at no cost.
        claim: one sentence that says what `like` stands for; first line of the message where the
            numbers differ.
        says: first line of every other message, as with `assert_sound`.
    """
    __tracebackhide__ = True
    given = _Inputs(inputs, {})
    leaves = given.leaves()
    handed, output = given.call(function, leaves)
    values, right = _tensors(output, claim), _tensors(given.call(like, leaves)[1], claim)
    if len(values) != len(right):
        raise AssertionError(f"{claim}\nYours gives {len(values)} tensors, not {len(right)}.")
    for value, other in zip(values, right, strict=True):
        assert_close(value, other, claim)
    with _headed(says):
        given.assert_kept(handed)
        for value, other in zip(values, right, strict=True):
            assert_dtype(value, other.dtype, SAME_DTYPE)
        which = [i for i, other in enumerate(right) if other.requires_grad]
        if which:
            names = [given.name(i) for i in given.places]
            theirs, ours = ([side[i] for i in which] for side in (values, right))
            assert_gradients(theirs, ours, dict(zip(names, leaves, strict=True)), SLOPES)


def assert_share(dropped: Tensor, rate: float, claim: str) -> None:
    """Fail unless about this share of a mask is True; who drops rightly fails once in 10^9 times.

    Args:
        dropped: which numbers were dropped, each by itself.
        rate: the probability of dropping.
        claim: one sentence that says what should be so; first line of the message.
    """
    __tracebackhide__ = True
    share = dropped.double().mean().item()
    if abs(share - rate) > 6.5 * math.sqrt(rate * (1 - rate) / dropped.numel()):
        raise AssertionError(f"{claim}\nWith dropout {rate:g}, yours drops {share:.2f} of them.")


def _sound(
    module: nn.Module,
    given: "_Inputs",
    like: Callable[..., Any] | None,
    claim: str,
    rate: float,
    idle: Sequence[str],
) -> None:
    """What `assert_sound` does, its messages as they are."""
    __tracebackhide__ = True
    state = {name: value.detach().clone() for name, value in _state(module).items()}
    was_training = module.training

    leaves = given.leaves()
    handed, output = given.call(module.eval(), leaves)
    values = _tensors(output, claim)
    given.assert_kept(handed)
    _assert_state(module, state)
    double = any(value.dtype == torch.float64 for value in (*state.values(), *leaves))
    for value in values:
        if value.is_floating_point():
            assert_dtype(value, *((torch.float64, DOUBLE) if double else (torch.float32, SINGLE)))
    right = None if like is None else _assert_like(given, values, like, claim)
    gradients = _assert_reached(module, given, leaves, values, idle)
    if right is not None:
        _assert_gradients(given, gradients, right)
    elif leaves:
        _assert_slope(module, given, values, gradients)
    _check_training(module.train(), given, values, rate)
    if rate and like is None:
        again = _tensors(given.call(module.eval(), given.leaves())[1], STILL)
        for one, other in zip(values, again, strict=True):
            assert_close(other, one, STILL)
    _assert_state(module, state)
    module.train(was_training)


class _Inputs:
    """What a module is called with, made anew for each call."""

    def __init__(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> None:
        self.names: list[str | None] = [None] * len(inputs) + list(named)
        self.values = [*inputs, *named.values()]
        self.places = [i for i, value in enumerate(self.values) if _has_fractions(value)]

    def single(self) -> "_Inputs":
        """The same in single precision."""
        values = [v.float() if _has_fractions(v) else v for v in self.values]
        count = self.names.count(None)
        names = [str(name) for name in self.names[count:]]
        return _Inputs(values[:count], dict(zip(names, values[count:], strict=True)))

    def leaves(self, step: float = 0.0) -> list[Tensor]:
        """Copies of the tensors with fractions, each moved on in a direction of its own."""
        given = [self.values[i].detach() for i in self.places]
        return [
            (value + step * direction).clone().requires_grad_()
            for value, direction in zip(given, self.directions(), strict=True)
        ]

    def directions(self) -> list[Tensor]:
        """One for each tensor with fractions."""
        return [
            draw(tuple(self.values[i].shape), seed=900 + i, dtype=self.values[i].dtype)
            for i in self.places
        ]

    def call(self, run: Callable[..., Any], leaves: Sequence[Tensor]) -> tuple[list[Any], Any]:
        """Call with copies; what it was called with, and what it gave."""
        handed = [_copied(v) for v in self.values]
        for i, leaf in zip(self.places, leaves, strict=True):
            handed[i] = leaf.clone()  # no leaf: a change in place is told in words, see below
        count = self.names.count(None)
        named = {str(n): v for n, v in zip(self.names[count:], handed[count:], strict=True)}
        return handed, run(*handed[:count], **named)

    def assert_kept(self, handed: Sequence[Any]) -> None:
        """Fail if a tensor, list or dictionary that was handed in has changed."""
        __tracebackhide__ = True
        for i, (value, now) in enumerate(zip(self.values, handed, strict=True)):
            if not _same(now, value) if _is_tensor(value) else _items(now) != _items(value):
                raise AssertionError(f"{KEPT}\n{self.name(i)} was changed by the call.")

    def name(self, i: int) -> str:
        """What an input is called in a message."""
        return self.names[i] or f"Input {i}"


def _assert_like(
    given: _Inputs, values: list[Tensor], like: Callable[..., Any], claim: str
) -> list[Any]:
    """Hold the outputs against those of a right answer; the gradients of its inputs."""
    __tracebackhide__ = True
    leaves = given.leaves()
    right = _tensors(given.call(like, leaves)[1], claim)
    for value, other in zip(values, right, strict=False):
        assert_close(value, other, claim, atol=_atol(other))
    return _gradients(right, leaves)


def _assert_reached(
    module: nn.Module,
    given: _Inputs,
    leaves: list[Tensor],
    values: list[Tensor],
    idle: Sequence[str],
) -> list[Tensor]:
    """The gradients of the inputs, if they and all parameters have some."""
    __tracebackhide__ = True
    learned = {
        name: value
        for name, value in _state(module).items()
        if value.requires_grad and name not in idle
    }
    names = [given.name(i) for i in given.places] + list(learned)
    gradients = _gradients(values, [*leaves, *learned.values()])
    for name, gradient in zip(names, gradients, strict=True):
        if gradient is None or not gradient.abs().sum() > 0:
            why = "is a part of the way cut off (detach, .data, a new tensor)?"
            raise AssertionError(f"{REACHES}\n{name} gets no gradient: {why}")
    for i, value in enumerate(values):
        if names and value.is_floating_point() and not value.requires_grad:
            raise AssertionError(f"{SLOPES}\nOutput {i} is cut off from all that it comes from.")
    return gradients[: len(leaves)]


def _assert_gradients(given: _Inputs, gradients: list[Tensor], right: list[Any]) -> None:
    __tracebackhide__ = True
    for i, gradient, wanted in zip(given.places, gradients, right, strict=True):
        if wanted is not None:
            try:
                assert_close(gradient, wanted, SLOPES, atol=_atol(wanted))
            except AssertionError as error:
                raise AssertionError(f"{error}\nThis is the gradient of {given.name(i)}.") from None


def _assert_slope(
    module: nn.Module, given: _Inputs, values: list[Tensor], gradients: list[Any]
) -> None:
    """Fail unless the gradients foretell what a small step of all inputs does to the output."""
    __tracebackhide__ = True
    step = STEP if values[0].dtype == torch.float64 else 100 * STEP
    with torch.no_grad():
        moved = _tensors(given.call(module, given.leaves(step))[1], SLOPES)
    change = _total(_learnable(values, moved)) - _total(_learnable(values, values)).detach()
    pairs = zip(gradients, given.directions(), strict=True)
    foretold = sum((one * other).sum() for one, other in pairs)
    size = sum(gradient.square().sum() for gradient in gradients) ** 0.5
    if not abs(change / step - foretold) <= SLACK * size:
        ratio = f"A step changes the output by {change / step:.4g} times its size"
        raise AssertionError(f"{SLOPES}\n{ratio}; by the gradients it should be {foretold:.4g}.")


def _check_training(module: nn.Module, given: _Inputs, values: list[Tensor], rate: float) -> None:
    """In training, in single precision, it gives the same, or each call drops something else."""
    __tracebackhide__ = True
    single = given.single()
    with _in_single(module), torch.no_grad():
        handed, output = single.call(module, single.leaves())
        again = single.call(module, single.leaves())[1] if rate else output
    single.assert_kept(handed)
    differ, first = False, _tensors(output, MODES)
    for one, other in zip(values, first, strict=True):
        if one.is_floating_point():
            assert_dtype(other, torch.float32, SINGLE)
        if not rate:
            assert_close(other, one.float(), MODES, atol=ROUGH * _largest(one))
        differ |= not torch.allclose(one.float(), other.float(), atol=ROUGH)
    if rate and not differ:
        raise AssertionError(f"{DROPS}\nYours gives the same in both modes.")
    if rate and all(map(torch.equal, first, _tensors(again, ANEW))):
        raise AssertionError(f"{ANEW}\nYours gives the same in two calls.")


def _tensors(output: Any, claim: str) -> list[Tensor]:
    """The tensors of an output: itself, or those in a tuple."""
    __tracebackhide__ = True
    if issubclass(type(output), (tuple, list)):  # a NamedTuple, too
        return [value for value in output if _is_tensor(value)]
    assert_shape(output, getattr(output, "shape", ()), claim)  # says what it is, if no tensor
    return [output]


def _learnable(values: list[Tensor], outputs: list[Tensor]) -> list[Tensor]:
    """The outputs where these values know where they come from."""
    return [output for value, output in zip(values, outputs, strict=True) if value.requires_grad]


def _gradients(values: list[Tensor], sources: list[Tensor]) -> list[Any]:
    """Of all outputs together, each number weighted by another, by each of the sources."""
    learnable = _learnable(values, values)
    if not learnable or not sources:
        return [None] * len(sources)
    return list(torch.autograd.grad(_total(learnable), sources, allow_unused=True))


def _total(values: list[Tensor]) -> Tensor:
    """One number made of all: a sum with weights, since a plain sum hides what norms do."""
    return torch.stack(
        [
            (value * draw(tuple(value.shape), seed=800 + i, dtype=value.dtype)).sum()
            for i, value in enumerate(values)
        ]
    ).sum()


def _places(module: Any, prefix: str = "") -> Iterator[tuple[str, dict[str, Any], str]]:
    """Where torch keeps parameters and buffers: name in the module, table, name in the table."""
    __tracebackhide__ = True
    if not issubclass(type(module), nn.Module):
        raise AssertionError(f"{STATE}\nYours is a {type(module).__name__}, expected an nn.Module.")
    for table in (module._parameters, module._buffers):
        for name, value in table.items():
            if value is not None:
                yield prefix + name, table, name
    for name, child in module._modules.items():
        if child is not None:
            yield from _places(child, f"{prefix}{name}.")


def _state(module: nn.Module) -> dict[str, Tensor]:
    __tracebackhide__ = True
    return {name: table[key] for name, table, key in _places(module)}


def _assert_state(module: nn.Module, before: Mapping[str, Tensor]) -> None:
    __tracebackhide__ = True
    now = _state(module)
    for name, value in before.items():
        if name not in now or not _same(now[name], value):
            raise AssertionError(f"{STATE}\n{name} was changed by the call.")


@contextmanager
def _in_single(module: nn.Module) -> Iterator[None]:
    """The module in float32; afterwards each parameter and buffer is what it was, to the bit."""
    kept = [(table, key, table[key], table[key].data) for _, table, key in _places(module)]
    gradients = [value.grad for _, _, value, _ in kept]
    for _, _, value, _ in kept:
        value.grad = None  # it would not fit
    module.float()
    yield
    for (table, key, value, data), gradient in zip(kept, gradients, strict=True):
        table[key] = value
        value.data = data
        value.grad = gradient


@contextmanager
def _headed(says: str) -> Iterator[None]:
    """Put this sentence, if it is one, above the message of whatever fails."""
    __tracebackhide__ = True
    try:
        yield
    except AssertionError as error:
        if not says:
            raise
        raise AssertionError(f"{says}\n{error}") from None


def _copied(value: Any) -> Any:
    """What a call may spoil: a tensor, a list or a dictionary of its own."""
    return (
        value.clone()
        if _is_tensor(value)
        else value.copy()
        if type(value) in (list, dict)
        else value
    )


def _items(value: Any) -> list[tuple[Any, int]]:
    """What a list or dictionary holds, in order, each by its place in memory; else nothing."""
    if type(value) not in (list, dict):
        return []
    pairs = value.items() if type(value) is dict else enumerate(value)
    return [(name, id(one)) for name, one in pairs]


def _has_fractions(value: Any) -> bool:
    return _is_tensor(value) and value.is_floating_point()


def _is_tensor(value: Any) -> bool:
    return issubclass(type(value), Tensor)  # by its memory, as in lab.check


def _same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | ((one != one) & (other != other))).all())


def _largest(value: Tensor) -> float:
    return max(1.0, value.detach().abs().max().item()) if value.numel() else 1.0


def _atol(value: Tensor) -> float:
    """What two ways to compute the same may differ by, larger for larger numbers."""
    return TOLERANCE.get(value.dtype, 0.0) * _largest(value)
