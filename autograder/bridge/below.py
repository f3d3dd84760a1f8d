"""Tells whether one of torch's operators is called where autograd does not see it.

There a call of an answer's looks like a step inside another operator. Three ways lead there:
inference mode and its tensors, of which torch tells; what torch calls for the operators of tensors
of a student's class, or in a mode (`__torch_dispatch__`); and the functions that are handed to an
operator of higher order (`torch.ops.higher_order`).
"""

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

DISPATCH = "__torch_dispatch__"


class Below:
    """Knows these ways as they are before any student's code; so make it then."""

    def __init__(self) -> None:
        """Look at torch, which is imported."""
        torch = sys.modules["torch"]
        modes = sys.modules["torch.utils._python_dispatch"]
        higher = sys.modules["torch._ops"].HigherOrderOperator
        self._torch = SimpleNamespace(
            Tensor=torch.Tensor,
            is_inference=torch.Tensor.is_inference,
            in_inference_mode=torch.is_inference_mode_enabled,
        )
        self._roots = (torch.Tensor, modes.TorchDispatchMode)
        self._higher = higher.__call__.__code__
        self._before = [_asked(kind) for kind in self._kinds()]

    def stops(self, stop: Callable[..., Any], kernel: Any) -> Callable[..., Any]:
        """What stands in a kernel's place: it stops what an answer calls, and lets a step run."""
        is_tensor, is_inference = self._torch.Tensor, self._torch.is_inference

        def step(keys: Any, *args: Any, **kwargs: Any) -> Any:
            given = [*args, *kwargs.values()]
            if self._torch.in_inference_mode() or any(
                isinstance(value, is_tensor) and is_inference(value) for value in given
            ):
                stop()
            if self._is_called_back() or self._is_dispatched():
                stop()
            return kernel.call_boxed(keys, *args, **kwargs)

        return step

    def _is_called_back(self) -> bool:
        """Whether an operator of higher order, or a mode, is under way in this thread."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code is self._higher or frame.f_code.co_name == DISPATCH:
                return True
            frame = frame.f_back
        return False

    def _is_dispatched(self) -> bool:
        """Whether torch may call a function for operators that is not its own."""
        for kind in self._kinds():
            known = any(_asked(kind) is one for one in self._before)
            if not known and not _is_torchs(kind):
                return True
        return False

    def _kinds(self) -> Iterator[type]:
        left = list(self._roots)
        while left:
            kind = left.pop()
            yield kind
            left += type.__subclasses__(kind)


def _asked(kind: type) -> Any:
    """What torch calls for the operators of a class."""
    for base in type.__dict__["__mro__"].__get__(kind):
        held = type.__dict__["__dict__"].__get__(base)
        if DISPATCH in held:
            return held[DISPATCH]
    return None


def _is_torchs(kind: type) -> bool:
    """Whether a class is one that torch has loaded since, and that stands where it says."""
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind and kind.__module__.partition(".")[0] == "torch"
