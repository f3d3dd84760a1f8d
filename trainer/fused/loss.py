"""Output layer and loss in one, for the real tokens only, a few rows of logits at a time."""

import math
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from trainer.fused import products
from trainer.fused.layers import FusedGenerator
from trainer.fused.products import factor_type, on_cpu, product

ROWS = 256  # of logits at a time: with a vocabulary of 10,000 they fit a processor's cache


def hidden_states(
    model: nn.Module, source: Int[Tensor, "B M"], decoder_input: Int[Tensor, "B N"]
) -> Float[Tensor, "B N d_model"]:
    """The decoder's output before the generator, so that the generator can skip the padding.

    The model may be wrapped by torch.compile or DistributedDataParallel. One without an attribute
    `generator` gives its logits; `token_loss` takes either.
    """
    inner = unwrapped(model)
    generator = getattr(inner, "generator", None)
    if not isinstance(generator, nn.Module):
        return model(source, decoder_input)
    inner.generator = nn.Identity()
    try:
        return model(source, decoder_input)
    finally:
        inner.generator = generator


def unwrapped(model: nn.Module) -> nn.Module:
    """The model itself, inside DistributedDataParallel and what torch.compile returned."""
    for wrapper in ("module", "_orig_mod"):
        model = getattr(model, wrapper, model)
    return model


def token_loss(
    model: nn.Module,
    hidden: Float[Tensor, "B N d_model"],
    labels: Int[Tensor, "B N"],
    pad_id: int,
    smoothing: float,
) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
    """Label-smoothed cross-entropy, summed over the real tokens, in fp32; and their number.

    Args:
        model: its generator turns hidden states into logits; without one they are logits.
        hidden: what `hidden_states` returned.
        labels: the token to say at each place; no loss where it is pad_id.
        pad_id: the padding's id.
        smoothing: share of the label's probability that is spread evenly over all V classes.
    """
    real = labels != pad_id
    generator = getattr(unwrapped(model), "generator", None)
    if hidden.device.type == "cpu":
        hidden, labels = hidden[real], labels[real]  # (real tokens, d_model)
        own = on_cpu(hidden) and (
            factor_type() == torch.float32 or products.onednn_works(factor_type())
        )
        if own and isinstance(generator, FusedGenerator) and on_cpu(generator.weight):
            wanted = torch.is_grad_enabled()
            loss = _OutputLoss.apply(hidden, generator.weight, labels, smoothing, wanted)
            return cast(Tensor, loss), real.sum()
    # elsewhere all places stay: to count the real ones would make the device wait
    logits = generator(hidden) if isinstance(generator, nn.Module) else hidden
    loss = F.cross_entropy(
        logits.flatten(0, -2).float(),
        labels.flatten(),
        ignore_index=pad_id,
        label_smoothing=smoothing,
        reduction="sum",
    )
    return loss, real.sum()


class _OutputLoss(torch.autograd.Function):
    """Generator and smoothed cross-entropy in one, a few rows of logits at a time.

    With logits z = W h, p = softmax(z), label y and smoothing s, the loss of a token is
    log sum exp z - (1 - s) z_y - s mean(z), and its gradient for z is p - (1 - s) e_y - s / V.
    The mean over the classes needs no logits: mean(z) = mean(W's rows) h. Gradients are worked out
    on the way, while a block of p is at hand; the idea is Liger kernel's (arXiv 2410.10989).
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor, labels: Tensor, smoothing: float, wanted: bool
    ) -> Float[Tensor, ""]:
        """The sum of the losses of rows h (T, d) with labels (T,); gradients only if wanted."""
        factors = factor_type()
        with torch.autocast("cpu", enabled=False):
            middle = weight.mean(0)  # (d,)
            evidence = (1 - smoothing) * weight[labels] + smoothing * middle  # (T, d)
            total = -(evidence * h).sum(dtype=torch.float64)
            of_h, of_weight = torch.empty_like(h), torch.zeros(weight.t().shape)  # (T, d), (d, V)
            # logits in units of log 2, because torch computes powers of 2 faster than those of e
            matrix, rounded = weight.to(factors), (h / math.log(2)).to(factors)
            for start in range(0, len(h), ROWS):
                rows = slice(start, start + ROWS)
                z = _block_product(rounded[rows], matrix).float()  # (r, V)
                largest = z.amax(-1, keepdim=True)
                p = z.sub_(largest).exp2_()
                sums = p.sum(-1, keepdim=True)
                total += (sums.log2() + largest).sum(dtype=torch.float64) * math.log(2)
                if not wanted:
                    continue
                p = p.to(factors)
                torch.div(_block_product(p, matrix.t()), sums, out=of_h[rows])
                of_weight += _block_product((h[rows] / sums).to(factors).t(), p.t())
            if not wanted:
                return total.float()
            of_weight -= (smoothing / len(weight)) * h.sum(0)[:, None]
            of_weight = of_weight.t().contiguous()
            of_weight.index_add_(0, labels, h, alpha=smoothing - 1)
            ctx.save_for_backward(of_h - evidence, of_weight)
            return total.float()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale what forward kept."""
        of_h, of_weight = ctx.saved_tensors
        return gradients[0] * of_h, gradients[0] * of_weight, None, None, None


def _block_product(x: Float[Tensor, "r d"], weight: Float[Tensor, "n d"]) -> Float[Tensor, "r n"]:
    own = products.slow_matrix_product() or x.dtype != torch.float32
    return product(x, weight) if own else x @ weight.t()
