"""Use the stand-ins in a model, each kind only if the whole model computes the same with it.

`adopt` gives parts of a model that are there already (their weights, names and places in the state
dict do not change) a faster way to compute the same. It does so kind by kind: the whole model's
outputs and gradients on a padded batch are compared with the student's own, and a stand-in that
differs, or that cannot be compared, is taken back. The student's file and classes are not touched.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainer.fused import products
from trainer.fused.layers import (
    FusedAttention,
    FusedDropout,
    FusedEmbedding,
    FusedFeedForward,
    FusedGenerator,
    FusedLayerNorm,
    FusedLinear,
)

AGREE = 1e-4  # largest relative difference; fp32 sums in another order differ by about 1e-6
FAILURES = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError)


@dataclass(frozen=True)
class DropIn:
    """A stand-in: whether it is used, why, and by how much it differed (relative, 0 if untried)."""

    name: str
    used: bool
    reason: str
    difference: float


def adopt(module: ModuleType, model: nn.Module) -> tuple[DropIn, ...]:
    """Give the model's parts faster ways to compute the same, one kind after the other.

    Each kind is kept only if the whole model's logits and gradients on a padded batch agree with
    those before, and a fully padded sentence gives finite ones. The random number generators, the
    gradients and the mode of the model stay as they were.

    Args:
        module: the student's module, whose classes the parts belong to.
        model: its Transformer; changed in place, its state dict keeps its names.
    """
    if next(model.parameters()).device.type == "cuda":
        # cuDNN's attention gives NaN gradients with a mask: pytorch issue 196678
        torch.backends.cuda.enable_cudnn_sdp(False)
    with _quiet(model):
        try:
            own = _Trial.of(model)
        except FAILURES as error:
            return _none(f"the model cannot be tried ({_sentence(error)})")
        if own.distance(_Trial.of(model)) > AGREE:
            return _none("the model gives something else each time, even without dropout")
        return tuple(_try(kind, module, model, own) for kind in KINDS)


def _none(reason: str) -> tuple[DropIn, ...]:
    return tuple(DropIn(kind.name, False, reason, 0.0) for kind in KINDS)


def _sentence(error: BaseException) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _try(kind: "_Kind", module: ModuleType, model: nn.Module, own: "_Trial") -> DropIn:
    obstacle = kind.obstacle(model)
    if obstacle:
        return DropIn(kind.name, False, obstacle, 0.0)
    parts = [part for part in model.modules() if kind.fits(module, part)]
    if not parts:
        return DropIn(kind.name, False, "the model has no such part", 0.0)
    classes = [type(part) for part in parts]
    for part in parts:
        part.__class__ = subclass(kind.stand_in, type(part))
    try:
        difference = own.distance(_Trial.of(model))
        finite = _finite_for_padding(model)
    except FAILURES as error:
        difference, finite, failure = float("inf"), False, _sentence(error)
    else:
        failure = "" if finite else "a fully padded sentence gives numbers that are not finite"
    if finite and difference <= AGREE:
        return DropIn(kind.name, True, kind.gain, difference)
    for part, before in zip(parts, classes, strict=True):
        part.__class__ = before
    reason = failure or f"it differs from the module's own by {difference:.1g} (relative)"
    return DropIn(kind.name, False, reason, difference)


@cache
def subclass(stand_in: type, own: type) -> type:
    """The student's class with the stand-in's forward; an instance can change to it and back."""
    return type(f"Fused{own.__name__}", (stand_in, own), {})


@contextmanager
def _quiet(model: nn.Module) -> Iterator[None]:
    """Full precision, no dropout, no trace: restore modes, gradients and generators afterwards."""
    modes = [(part, part.training) for part in model.modules()]
    drops = [(part, part.p) for part in model.modules() if isinstance(part, nn.Dropout)]
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    backends = cast(Any, torch.backends)  # its stubs do not know mkldnn.matmul
    products = backends.cuda.matmul, backends.mkldnn.matmul
    precisions = [product.fp32_precision for product in products]
    devices = [parameter.device for parameter in model.parameters() if parameter.is_cuda]
    with torch.random.fork_rng(set(devices)), torch.enable_grad():
        try:
            for product in products:
                product.fp32_precision = "ieee"
            model.train()
            for part, _ in drops:
                part.p = 0.0
            yield
        finally:
            for product, precision in zip(products, precisions, strict=True):
                product.fp32_precision = precision
            for part, mode in modes:
                part.training = mode
            for part, p in drops:
                part.p = p
            for parameter, gradient in gradients:
                parameter.grad = gradient


@dataclass(frozen=True)
class _Trial:
    """What the whole model gives on one padded batch: logits of real places, and gradients."""

    numbers: tuple[Tensor, ...]

    @classmethod
    def of(cls, model: nn.Module) -> "_Trial":
        """Run the model forwards and backwards on a batch whose rows have different lengths."""
        source, target, pad_id = _batch(model)
        logits, gradients = _run(model, source, target, pad_id)
        return cls((logits[target != pad_id], *gradients))

    def distance(self, other: "_Trial") -> float:
        """The largest relative difference of a tensor; infinite where one is not finite.

        A gradient that is 0 but for rounding is measured against a thousandth of the largest.
        """
        logits, largest = self.numbers[0].norm(), max(n.norm() for n in self.numbers[1:])
        floors = [logits] + [1e-3 * largest] * (len(self.numbers) - 1)
        shares = [
            ((theirs - ours).norm() / torch.maximum(ours.norm(), floor)).item()
            for ours, theirs, floor in zip(self.numbers, other.numbers, floors, strict=True)
        ]
        return max(share if share == share else float("inf") for share in shares)


def _batch(model: nn.Module) -> tuple[Tensor, Tensor, int]:
    """Four padded pairs of random ids, on the model's device; the same for every trial."""
    pad_id = int(cast(Any, model).pad_id)
    weights = cast(Any, model)
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(1)
    sides = []
    for weight, lengths in (
        (weights.source_embedding.weight, (7, 5, 2, 6)),
        (weights.target_embedding.weight, (6, 8, 3, 1)),
    ):
        ids = torch.randint(len(weight) - 1, (len(lengths), max(lengths)), generator=generator)
        ids += ids >= pad_id  # no real token is padding
        places = torch.arange(max(lengths))
        sides.append(ids.masked_fill(places >= torch.tensor(lengths)[:, None], pad_id).to(device))
    return sides[0], sides[1], pad_id


def _run(
    model: nn.Module, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"], pad_id: int
) -> tuple[Float[Tensor, "B N V"], list[Tensor]]:
    """Logits, and the gradients of a loss that no two logits enter in the same way."""
    model.zero_grad(set_to_none=True)
    logits = model(source, target)
    seeded = torch.Generator().manual_seed(2)
    weights = torch.randn(logits.shape, generator=seeded).to(logits)
    (logits * weights)[target != pad_id].sum().backward()
    gradients = [
        torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for parameter in model.parameters()
    ]
    return logits.detach(), gradients


def _finite_for_padding(model: nn.Module) -> bool:
    """Whether a fully padded source, and a fully padded pair, leave every number finite."""
    source, target, pad_id = _batch(model)
    source[1:3] = pad_id
    target[2] = pad_id
    logits, gradients = _run(model, source, target, pad_id)
    return all(bool(numbers.isfinite().all()) for numbers in (logits, *gradients))


# Kinds -------------------------------------------------------------------------------------------


def _needs_slow_product(model: nn.Module) -> str:
    on_cpu = next(model.parameters()).device.type == "cpu"
    return (
        ""
        if on_cpu and products.slow_matrix_product()
        else "torch's own matrix product is no slower here"
    )


def _needs_cpu(model: nn.Module) -> str:
    on_cpu = next(model.parameters()).device.type == "cpu"
    return "" if on_cpu else "torch's own is fast on this device"


def _nothing(model: nn.Module) -> str:
    return ""


def _fits(name: str, *attributes: str) -> Callable[[ModuleType, nn.Module], bool]:
    """Whether a part is of exactly this class of the module, has these, and drops nothing."""

    def fits(module: ModuleType, part: nn.Module) -> bool:
        return (
            type(part) is getattr(module, name, None)
            and all(hasattr(part, attribute) for attribute in attributes)
            and not any(isinstance(inner, nn.Dropout) for inner in part.modules())
        )

    return fits


@dataclass(frozen=True)
class _Kind:
    """One kind of stand-in: its class, what it fits, and what is gained."""

    name: str
    stand_in: type
    fits: Callable[[ModuleType, nn.Module], bool]
    gain: str
    obstacle: Callable[[nn.Module], str] = _nothing  # why it is no use for this model; or ""


KINDS = (
    _Kind(
        "linear maps",
        FusedLinear,
        lambda module, part: type(part) is nn.Linear,
        "oneDNN's matrix product in place of MKL's",
        _needs_slow_product,
    ),
    _Kind(
        "dropout",
        FusedDropout,
        lambda module, part: type(part) is nn.Dropout,
        "four coin flips from one random number",
        _needs_cpu,
    ),
    _Kind(
        "embedding",
        FusedEmbedding,
        _fits("TokenEmbedding", "weight"),
        "torch's look-up, whose backward pass is faster than an index's",
    ),
    _Kind(
        "layer norm",
        FusedLayerNorm,
        _fits("LayerNorm", "gain", "bias", "eps"),
        "one pass in place of six",
    ),
    _Kind(
        "feed-forward",
        FusedFeedForward,
        _fits("FeedForward", "inner", "outer"),
        "the ReLU within the first matrix product",
    ),
    _Kind(
        "attention",
        FusedAttention,
        _fits("MultiHeadAttention", "w_q", "w_k", "w_v", "w_o", "num_heads"),
        "one product for queries, keys and values; no weights that nobody uses",
    ),
    _Kind(
        "generator",
        FusedGenerator,
        _fits("Generator", "weight"),
        "the loss takes a few rows of logits at a time",
    ),
)
