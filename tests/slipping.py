"""Slips of every kind, made by wrapping a right answer: what a chapter's tests must notice.

Each kind is one that tests forget again and again: an evaluation mode that is never run, a gradient
that is cut off, a float where a whole number was asked for. `spots` finds where a kind could happen
in a question's solution, by the annotations; `slipped` gives the cell in which it does.
"""

import ast
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from autograder.authoring.source import Cell, fill_in

KINDS = {
    "cuts off": "the gradient of an input is cut off",
    "gives cut off": "a result is cut off from its gradient",
    "changes": "an input is changed by the call",
    "changes itself": "the module's parameters or buffers are changed by the call",
    "wrong in evaluation": "evaluation gives something else",
    "unmasked in evaluation": "the mask is used in training only",
    "float for int": "whole numbers are floats",
    "tensor for float": "a number is a tensor",
    "always double": "what comes out is in double precision, whatever goes in",
    "fills with -100": "what the mask hides gets the score -100, and is not set to 0 afterwards",
}
ROUNDED = "rounded"  # computed in single precision, which is right unless the text says otherwise


def spots(cell: Cell) -> Iterator[tuple[str, str, str]]:
    """Where a slip can happen: the kind, the definition's dotted name, which input or result."""
    for name, function in _definitions(cell):
        is_forward = name.endswith(".forward")
        inputs = _annotations(function)
        result = ast.unparse(function.returns) if function.returns else ""
        fractions = [one for one, text in inputs.items() if "Float[" in text]
        for i in range(result.count("Float[") if fractions else 0):
            yield "gives cut off", name, str(i)
        if fractions and "Float[" in result:
            yield "always double", name, ""
        for one in fractions if "Float[" in result else ():
            yield "cuts off", name, one
        for one, text in inputs.items():
            if "Callable" not in text and re.search(r"Tensor|Sequence\[|dict\[", text):
                yield "changes", name, one
        if is_forward:
            yield "changes itself", name, ""
            yield "wrong in evaluation", name, ""
            for one in inputs:
                if one.endswith("mask"):
                    yield "unmasked in evaluation", name, one
        if "int" in result.replace("Int", ""):
            yield "float for int", name, ""
        if "float" in result:
            yield "tensor for float", name, ""
        if "mask" in inputs and "masked_fill" in ast.unparse(function):
            yield "fills with -100", name, ""


def rounding(cell: Cell) -> Iterator[str]:
    """The definitions that could compute in single precision what they are given in double."""
    for name, function in _definitions(cell):
        inputs = "".join(_annotations(function).values())
        if "Float[" in inputs and "Callable" not in inputs:  # which takes double precision
            yield name


def slipped(cell: Cell, kind: str, name: str, which: str = "") -> Cell:
    """The cell, its answer with this slip."""
    call = f"slip({name.partition('.')[0]!r}, {name!r}, {kind!r}, {which!r}, globals())"
    return fill_in(cell, f"{cell.source}\nfrom tests.slipping import slip\n{call}")


def slip(top: str, name: str, kind: str, which: str, names: dict[str, Any]) -> None:
    """Put a wrapped function in the place of one that a cell has just defined."""
    _, dot, method = name.partition(".")
    owner = names[top] if dot else None
    right = getattr(owner, method) if dot else names[top]
    makers = {ROUNDED: _rounded, "fills with -100": _filled}
    wrong = makers[kind](right) if kind in makers else _wrapped(right, kind, which)
    if owner is None:
        names[top] = wrong
    else:
        setattr(owner, method, wrong)


def _definitions(cell: Cell) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.parse(cell.source).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
                    yield f"{node.name}.{part.name}", part


def _annotations(function: ast.FunctionDef) -> dict[str, str]:
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {one.arg: ast.unparse(one.annotation) for one in every if one.annotation}


def _wrapped(right: Callable[..., Any], kind: str, which: str) -> Callable[..., Any]:
    signature = inspect.signature(right)

    @functools.wraps(right)
    def wrong(*args: Any, **named: Any) -> Any:
        given = signature.bind(*args, **named)
        module = given.arguments.get("self")
        is_still = isinstance(module, nn.Module) and not module.training
        if kind == "cuts off" and isinstance(given.arguments.get(which), Tensor):
            given.arguments[which] = given.arguments[which].detach()
        if kind == "unmasked in evaluation" and is_still:
            given.arguments[which] = None
        result = right(*given.args, **given.kwargs)
        if kind == "changes":
            _change(given.arguments.get(which))
        elif kind == "changes itself" and isinstance(module, nn.Module):
            for value in [*module.parameters(), *module.buffers()]:
                _change(value)
        elif kind == "wrong in evaluation" and is_still:
            return _each(result, lambda value: value + 1 if _is_float(value) else value)
        elif kind == "float for int":
            return _each(result, lambda value: float(value) if type(value) is int else value)
        elif kind == "tensor for float":
            return _each(result, lambda v: torch.tensor(v) if type(v) is float else v)
        elif kind == "always double":
            return _each(result, lambda value: value.double() if _is_float(value) else value)
        elif kind == "gives cut off":
            return _detached(result, int(which))
        return result

    return wrong


def _detached(result: Any, which: int) -> Any:
    if isinstance(result, Tensor):
        return result.detach()
    if isinstance(result, tuple) and isinstance(result[which], Tensor):
        return (*result[:which], result[which].detach(), *result[which + 1 :])
    return result


def _change(value: Any) -> None:
    if isinstance(value, Tensor):
        value.data = ~value.data if value.dtype == torch.bool else value.data + 1
    elif isinstance(value, tuple):
        for one in value:
            _change(one)
    elif isinstance(value, list):
        value.extend(value[:1])
    elif isinstance(value, dict):
        value["one more"] = len(value)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) in (tuple, list):
        return type(value)(_each(one, change) for one in value)
    if isinstance(value, dict):
        return {key: _each(one, change) for key, one in value.items()}
    return change(value)


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _rounded(right: Callable[..., Any]) -> Callable[..., Any]:
    """Compute in single precision; what comes out has the dtype that it should have."""
    busy: list[int] = []

    @functools.wraps(right)
    def rough(*args: Any, **named: Any) -> Any:
        every = [*args, *named.values()]
        if busy or not any(_is_float(one) and one.dtype == torch.float64 for one in every):
            return right(*args, **named)
        args, named = _each(args, _single), _each(named, _single)
        busy.append(1)
        try:
            if isinstance(args[0], nn.Module) and right.__name__ == "forward":
                module = args[0]
                state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
                rounded = {name: _single(value) for name, value in state.items()}
                result = torch.func.functional_call(module, rounded, args[1:], named)
            else:
                result = right(*args, **named)
        finally:
            busy.pop()
        return _each(result, lambda value: value.double() if _is_float(value) else value)

    return rough


def _single(value: Any) -> Any:
    return value.float() if _is_float(value) else value


def _filled(right: Callable[..., Any]) -> Callable[..., Any]:
    """Hidden scores become -100 where the answer itself fills them in."""
    own = right.__code__.co_filename

    @functools.wraps(right)
    def wrong(*args: Any, **named: Any) -> Any:
        fill = Tensor.masked_fill

        def weak(self: Tensor, mask: Tensor, value: Any) -> Tensor:
            if sys._getframe(1).f_code.co_filename != own:
                return fill(self, mask, value)
            return fill(self, mask, -100.0) if value else self

        Tensor.masked_fill = weak  # pyright: ignore
        try:
            return right(*args, **named)
        finally:
            Tensor.masked_fill = fill

    return wrong
