"""Matrix products by oneDNN, for processors on which torch's own leave half of the units unused."""

from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

_CPUINFO = Path("/proc/cpuinfo")
# read here: a contest's entry runs in the grader's sandbox, where it cannot be seen later
_IS_INTELS = not _CPUINFO.is_file() or "GenuineIntel" in _CPUINFO.read_text(encoding="utf-8")


@cache
def slow_matrix_product() -> bool:
    """Whether torch's own matrix product leaves this processor's AVX-512 unused, unlike oneDNN.

    MKL takes its AVX-512 path on Intel's processors only. (A rule, not a stopwatch: the same
    machine must choose the same way each time, or a resumed training would differ in the last bit.)
    """
    if not onednn_works(torch.float32) or not torch.backends.mkl.is_available():
        return False
    wide = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    return wide and not _IS_INTELS


@cache
def onednn_works(factors: torch.dtype) -> bool:
    """Whether oneDNN's product can be called here, with factors of this type."""
    if not torch.backends.mkldnn.is_available():
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    half = factors == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return factors == torch.float32 or half


def on_cpu(*tensors: Tensor) -> bool:
    """Whether the kernels here may be called: fp32 numbers on a CPU, and no compiler at work."""
    return not torch.compiler.is_compiling() and all(
        tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors
    )


def factor_type() -> torch.dtype:
    """What factors of matrix products are rounded to: bf16 under autocast on a CPU, else not."""
    if torch.is_autocast_enabled("cpu"):
        return torch.get_autocast_dtype("cpu")
    return torch.float32


def product(
    x: Float[Tensor, "... d"],
    weight: Float[Tensor, "n d"],
    bias: Float[Tensor, "n"] | None = None,
    then: str = "none",  # or "relu"
) -> Float[Tensor, "... n"]:
    """x @ weight.T + bias by oneDNN, in the factors' type; no gradients."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, then, [], "")


def _map(
    x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool
) -> tuple[Float[Tensor, "... n"], Tensor, Tensor]:
    """relu(x @ weight.T + bias) in fp32, and the two factors as they were rounded."""
    factors = factor_type()
    rounded, matrix = x.to(factors), weight.to(factors)
    bias = None if bias is None else bias.to(factors)
    return product(rounded, matrix, bias, "relu" if relu else "none").float(), rounded, matrix


class _Linear(torch.autograd.Function):
    """relu(x @ weight.T + bias), the ReLU if wanted, by oneDNN forwards and backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
        """Return (..., n) for x (..., d) and weight (n, d)."""
        y, rounded, matrix = _map(x, weight, bias, relu)
        ctx.save_for_backward(rounded, matrix, y if relu else None)
        ctx.with_bias = bias is not None
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, weight and bias."""
        x, weight, y = ctx.saved_tensors
        g = gradients[0].reshape(-1, weight.shape[0])  # (rows, n)
        if y is not None:
            g = torch.ops.aten.threshold_backward(g, y.reshape(g.shape), 0)
        of_x = of_weight = of_bias = None
        rounded = g.to(weight.dtype)
        if ctx.needs_input_grad[0]:
            of_x = product(rounded, weight.t()).float().reshape(x.shape)
        if ctx.needs_input_grad[1]:
            of_weight = _weight_gradient(x.reshape(-1, x.shape[-1]), rounded).float()
        if ctx.with_bias and ctx.needs_input_grad[2]:
            of_bias = g.sum(0)
        return of_x, of_weight, of_bias, None


def _weight_gradient(x: Float[Tensor, "r d"], g: Float[Tensor, "r n"]) -> Float[Tensor, "n d"]:
    """g.T @ x; oneDNN copies its first factor if that is transposed, so that is the smaller one."""
    if x.dtype != torch.float32:
        return g.t() @ x  # torch leaves these types to oneDNN, which then copies nothing
    return product(g.t(), x.t()) if g.shape[1] <= x.shape[1] else product(x.t(), g.t()).t()


def linear(
    x: Float[Tensor, "... d"],
    weight: Float[Tensor, "n d"],
    bias: Float[Tensor, "n"] | None = None,
    *,
    relu: bool = False,
) -> Float[Tensor, "... n"]:
    """x @ weight.T + bias, then a ReLU if wanted; by oneDNN where torch's own product is slower.

    Under autocast on a CPU the factors are rounded to its type, the result is fp32 all the same.
    """
    half = factor_type() != torch.float32
    if on_cpu(x, weight) and (slow_matrix_product() or half) and onednn_works(factor_type()):
        if torch.is_grad_enabled():
            return cast(Tensor, _Linear.apply(x, weight, bias, relu))
        return _map(x, weight, bias, relu)[0]
    y = F.linear(x, weight, bias)
    return F.relu(y) if relu else y
