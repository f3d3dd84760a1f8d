"""Checks for test cells: each says in words what is wrong, and where, before any traceback.

The first line of every message is the claim that failed and stands by itself; the lines after it
are details (index, shapes, a likely cause).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

Number = float | int | bool

# Doubles may be off by what a step in single precision costs, such as the root of a whole number
# that was made a tensor: who asks for less says so by atol.
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 1e-2}
TOLERANCE |= {torch.complex128: 1e-6, torch.complex64: 1e-5}


def draw(*shapes: Sequence[int], seed: int = 0, dtype: torch.dtype = torch.float64) -> Any:
    """Draw one normal tensor (mean 0, variance 1) per shape; one shape gives one tensor.

    The same seed gives the same numbers; torch's global generator is left alone.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(*shape, generator=generator, dtype=dtype) for shape in shapes]
    return drawn[0] if len(drawn) == 1 else tuple(drawn)


def assert_shape(actual: Any, shape: Sequence[int], claim: str) -> None:
    """Fail unless `actual` is a tensor of exactly this shape."""
    __tracebackhide__ = True
    theirs = _tensor(actual, claim)
    if tuple(theirs.shape) != tuple(shape):
        _fail(claim, f"Yours has shape {tuple(theirs.shape)}, expected {tuple(shape)}.")


def assert_dtype(actual: Any, dtype: torch.dtype, claim: str) -> None:
    """Fail unless `actual` is a tensor of exactly this dtype."""
    __tracebackhide__ = True
    theirs = _tensor(actual, claim)
    if theirs.dtype != dtype:
        _fail(claim, f"Yours has dtype {theirs.dtype}, expected {dtype}.")


def assert_close(
    actual: Any, expected: Tensor | Number, claim: str, *, atol: float | None = None
) -> None:
    """Fail unless `actual` equals `expected` within an absolute tolerance.

    Args:
        actual: the student's tensor (or number).
        expected: a tensor of the same shape, or one number that every entry should equal.
        claim: one sentence that says what should hold; first line of the message.
        atol: tolerance; by default 1e-6 in float64 and 1e-5 in float32, times the largest number
            that is expected if that is above 1. Where the two differ in
            precision the stricter one holds: an answer in less precision than what is expected
            is no excuse for a larger error.
    """
    __tracebackhide__ = True
    both_numbers = _is_number(actual) and _is_number(expected)
    exact = torch.float64  # a Python number has this precision
    given = torch.tensor(actual, dtype=exact) if both_numbers else _tensor(actual, claim)
    wanted = expected if isinstance(expected, Tensor) else torch.tensor(expected, dtype=exact)
    if atol is None:
        atol = _tolerance(given.dtype, wanted.dtype, isinstance(expected, Tensor))
        atol *= _size(wanted)
    theirs, ours = _precise(given, wanted)
    if isinstance(expected, Tensor) and theirs.shape != ours.shape:
        shapes = f"Yours has shape {tuple(theirs.shape)}, expected {tuple(ours.shape)}."
        _fail(claim, shapes + _transposed_hint(theirs, ours))
    if not theirs.numel() and ours.numel():
        _fail(claim, f"Yours has shape {tuple(theirs.shape)}: it holds no number.")
    ours = ours.expand(theirs.shape)
    if torch.allclose(theirs, ours, rtol=0.0, atol=atol):
        return  # nearly always; what follows only tells NaN beside NaN, and finds words
    nan = torch.isnan(theirs)
    if (nan & ~torch.isnan(ours)).any():
        _fail(claim, f"Yours is NaN (not a number) {_at(nan & ~torch.isnan(ours))}.")
    same = (nan & torch.isnan(ours)) | (ours == theirs) | ((ours - theirs).abs() <= atol)
    if not same.all():
        _fail(claim, _difference(theirs, ours, ~same))


def assert_gradients(
    actual: Any,
    expected: Tensor | Sequence[Tensor],
    inputs: Mapping[str, Tensor],
    claim: str,
) -> None:
    """Fail unless from two outputs that are alike the same gradients flow back to these inputs.

    Args:
        actual: the student's output, or several of them.
        expected: what they should be, computed from the same inputs.
        inputs: by what they are called in the message.
        claim: one sentence that says what should hold; first line of the message.
    """
    __tracebackhide__ = True
    ours = _weighed(expected if isinstance(expected, Sequence) else [expected])
    theirs = [actual] if isinstance(expected, Tensor) else list(actual)
    for i, one in enumerate(theirs):
        if not _tensor(one, claim).requires_grad:
            which = f"Output {i} of yours" if len(theirs) > 1 else "Yours"
            _fail(claim, f"{which} is cut off from all that it was computed from.")
    leaves = list(inputs.values())
    found = torch.autograd.grad(_weighed(theirs), leaves, allow_unused=True)
    wanted = torch.autograd.grad(ours, leaves, allow_unused=True, materialize_grads=True)
    for name, one, other in zip(inputs, found, wanted, strict=True):
        if one is None:
            _fail(claim, f"No gradient reaches {name}.")
        # on the way back errors add up, hence ten times the tolerance
        atol = 10 * _tolerance(one.dtype, other.dtype, is_tensor=True) * _size(other)
        assert_close(one, other, f"{claim}\nThis is the gradient of {name}.", atol=atol)


def assert_whole(actual: Any, expected: int, claim: str) -> None:
    """Fail unless `actual` is this whole number, an int: 12.0 is none."""
    __tracebackhide__ = True
    _number(actual, int, "a whole number (int)", claim)
    if actual != expected:
        _fail(claim, f"Yours is {actual}, expected {expected}.")


def assert_fraction(actual: Any, claim: str) -> None:
    """Fail unless `actual` is a float, as numpy's float64 is, too, and no tensor."""
    __tracebackhide__ = True
    _number(actual, float, "a float", claim)


def assert_raises(
    error: type[Exception], call: Callable[[], Any], claim: str, mentions: Sequence[str] = ()
) -> None:
    """Fail unless `call()` raises `error` with a message that mentions each of these words."""
    __tracebackhide__ = True
    try:
        call()
    except error as caught:
        missing = [word for word in mentions if word not in str(caught)]
        if missing:
            _fail(claim, f"The message {str(caught)!r} should mention {', '.join(missing)}.")
        return
    except Exception as other:
        if isinstance(other, NotImplementedError) and "not answered yet" in str(other):
            raise
        kind = type(other).__name__
        _fail(claim, f"Expected a {error.__name__}; your code stopped with {kind}: {other}")
    _fail(claim, f"Expected a {error.__name__}; nothing was raised.")


@contextmanager
def expect_no_error(claim: str) -> Iterator[None]:
    """Fail with this claim if an answer stops in the `with` block.

    For hidden tests, where nothing at all is told of an error: the claim says which case it met.
    """
    __tracebackhide__ = True
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        if isinstance(error, NotImplementedError) and "not answered yet" in str(error):
            raise
        _fail(claim, f"Your code stopped with {type(error).__name__}: {error}")


@contextmanager
def unchanged(
    module: nn.Module,
    *tensors: Tensor,
    claim: str = "a call should change neither the module's parameters nor what is handed to it",
) -> Iterator[None]:
    """Fail if the parameters of `module`, or one of these tensors, change in the `with` block.

    For tests that compare calls of one module with each other: if the module may change its own
    numbers in the first call, to zeros for instance, all later calls agree whatever it does.

    Args:
        module: whose parameters should stay, those of the modules inside it too.
        tensors: such as inputs, which should stay as well.
        claim: one sentence that says what should hold; first line of the message.
    """
    __tracebackhide__ = True
    kept = {name: parameter.detach().clone() for name, parameter in _parameters(module, claim)}
    inputs = [tensor.detach().clone() for tensor in tensors]
    yield
    now = dict(_parameters(module, claim))
    for name, old in kept.items():
        if name not in now or not _same(now[name], old):
            _fail(claim, f"{name} was changed by the call.")
    for i, (old, tensor) in enumerate(zip(inputs, tensors, strict=True)):
        if not _same(tensor, old):
            _fail(claim, f"Tensor {i} of those that were handed in was changed by the call.")


def parameters_of(
    module: Any, claim: str = "an nn.Module should be made"
) -> Iterator[tuple[str, Tensor]]:
    """All parameters, each once, with their names; methods of the module's own are not asked."""
    __tracebackhide__ = True
    seen: set[int] = set()
    for name, parameter in _parameters(module, claim):
        if id(parameter) not in seen:
            seen.add(id(parameter))
            yield name, parameter


def visible_passed() -> None:
    """Say that the visible tests passed; hidden ones run when the notebook is graded."""
    print("Visible tests passed. Hidden tests run when your notebook is graded.")


def _parameters(module: Any, claim: str, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """All parameters with their names; read where PyTorch keeps them: methods can say anything."""
    __tracebackhide__ = True
    if not issubclass(type(module), nn.Module):
        _fail(claim, f"Yours is a {type(module).__name__}, expected an nn.Module.")
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield prefix + name, parameter
    for name, child in module._modules.items():
        if child is not None:
            yield from _parameters(child, claim, f"{prefix}{name}.")


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers, NaN counting as one of them."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | (torch.isnan(one) & torch.isnan(other))).all())


def _tolerance(theirs: torch.dtype, ours: torch.dtype, is_tensor: bool) -> float:
    """How far an answer of one dtype may be from what is expected in another.

    A number, or whole numbers, are expected of answers in double and in single precision alike.
    """
    known = is_tensor and ours in TOLERANCE
    return min(TOLERANCE.get(theirs, 0.0), TOLERANCE[ours if known else torch.float32])


def _size(expected: Tensor) -> float:
    """The largest finite number that is expected, at least 1; whole numbers are exact."""
    if not (expected.is_floating_point() or expected.is_complex()):
        return 1.0
    sizes = expected.detach().abs()
    if sizes.numel() and math.isfinite(top := float(sizes.max())):
        return max(1.0, top)  # NaN would have been the largest
    sizes = sizes[torch.isfinite(sizes)]
    return max(1.0, float(sizes.max())) if sizes.numel() else 1.0


def _precise(theirs: Tensor, ours: Tensor) -> tuple[Tensor, Tensor]:
    """Both in double precision, on one device, without a history."""
    either = theirs.is_complex() or ours.is_complex()
    dtype = torch.complex128 if either else torch.float64
    theirs = theirs.detach().to(dtype)
    return theirs, ours.detach().to(theirs.device, dtype)


def _is_number(value: Any) -> bool:
    return issubclass(type(value), Number)


def _weighed(outputs: Sequence[Tensor]) -> Tensor:
    """One number made of all outputs, in which each entry counts differently."""
    signals = [draw(tuple(one.shape), seed=700 + i) for i, one in enumerate(outputs)]
    return torch.stack(
        [(one * signal.to(one.dtype)).sum() for one, signal in zip(outputs, signals, strict=True)]
    ).sum()


def _number(actual: Any, kind: type, name: str, claim: str) -> None:
    __tracebackhide__ = True
    if actual is None:
        _fail(claim, "Yours is None: is a return statement missing?")
    # by its memory: `__class__` can say anything; a boolean is no whole number, float64 is a float
    if type(actual) is not kind and not (kind is float and issubclass(type(actual), float)):
        shown = "" if isinstance(actual, Tensor) else f" ({actual})"
        _fail(claim, f"Yours is a {type(actual).__name__}{shown}, expected {name}.")


def _tensor(actual: Any, claim: str) -> Tensor:
    __tracebackhide__ = True
    if actual is None:
        _fail(claim, "Yours is None: is a return statement missing?")
    if not issubclass(type(actual), Tensor):  # by its memory: `__class__` can say anything
        _fail(claim, f"Yours is a {type(actual).__name__}, expected a torch.Tensor.")
    return actual


def _fail(claim: str, detail: str) -> NoReturn:
    __tracebackhide__ = True
    raise AssertionError(f"{claim}\n{detail}")


def _at(wrong: Tensor) -> str:
    """Where the first of the wrong entries is, and how many there are."""
    if wrong.ndim == 0:
        return "(a single number)"
    index = [int(i) for i in wrong.nonzero()[0]]
    return f"at index {index} ({int(wrong.sum())} of {wrong.numel()} entries)"


def _difference(theirs: Tensor, ours: Tensor, wrong: Tensor) -> str:
    first = tuple(wrong.nonzero()[0]) if wrong.ndim else ()
    one, other = theirs[first].item(), ours[first].item()
    values = f"yours {one:.6g}, expected {other:.6g}"
    if f"{one:.6g}" == f"{other:.6g}":  # too close to look different
        values += f", a difference of {one - other:.2g}"
    hints = _scale_hint(theirs, ours) + _transposed_hint(theirs, ours)
    return f"First difference {_at(wrong)}: {values}.{hints}"


def _scale_hint(theirs: Tensor, ours: Tensor) -> str:
    """Name a constant factor between the two, if there is one worth the name."""
    if theirs.is_complex():  # which have no order
        return ""
    large = ours.abs() > 1e-6
    if int(large.sum()) < 2:
        return ""
    ratio = theirs[large] / ours[large]
    factor = ratio.median().item()
    if abs(factor) < 1e-6 or abs(factor - 1) < 1e-3:
        return ""
    if (ratio - factor).abs().max() > 1e-6 * abs(factor):
        return ""
    return f" Everything is {factor:.6g} times what it should be."


def _transposed_hint(theirs: Tensor, ours: Tensor) -> str:
    if min(theirs.ndim, ours.ndim) < 2 or theirs.shape != ours.transpose(-2, -1).shape:
        return ""
    flipped = ours.transpose(-2, -1)
    if ours.shape == flipped.shape and torch.allclose(ours, flipped, atol=1e-6):
        return ""
    if torch.allclose(theirs, flipped, atol=1e-6):
        return " Yours is the transpose of what it should be (last two axes swapped)."
    return ""
