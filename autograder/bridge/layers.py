"""Linear layers that a test hands over, computed in the process of the answer that calls them.

Such a layer is nothing but its parameters, which both ends have and keep in step. What is more
than that, a class of the instructor's, a hook, a mode that counts operations, has its calls made
where the test runs, as those of all other modules are.
"""

from typing import Any

import torch
from torch.nn import Linear, Module
from torch.nn.functional import linear
from torch.nn.modules.module import _has_any_global_hook

FORWARD, CALL = Linear.forward, Module.__call__
SLOT = "()"  # stands for whether calls are, among what the other end knows of a module
# what may be taken for a step of a linear layer, where a question forbids it
STEPS = frozenset(
    ("linear", "mm", "bmm", "mv", "dot", "matmul", "addmm", "addmv", "baddbmm", "add", "mul")
) | frozenset(("t", "transpose", "view", "expand", "einsum", "sum"))


def is_computed_there(module: Module) -> bool:
    """Whether the answer's process computes what this module of a test gives."""
    return (
        type(module) is Linear
        and not (module._forward_hooks or module._forward_pre_hooks)
        and not (module._backward_hooks or module._backward_pre_hooks)
        and "forward" not in module.__dict__
        and _is_usual()
    )


def _is_usual() -> bool:
    """Whether nothing looks at, or changes, what all modules and functions do."""
    return (
        Linear.forward is FORWARD
        and Module.__call__ is CALL
        and torch.nn.functional.linear is linear
        and not _has_any_global_hook()
        and not torch._C._len_torch_function_stack()
        and not torch._C._len_torch_dispatch_stack()
        and not torch.is_autocast_enabled("cpu")
    )


def compute(stand_in: Any, x: Any) -> Any:
    """What the layer gives; called where the answer runs."""
    return linear(x, stand_in._parameters["weight"], stand_in._parameters["bias"])
