"""The stand-ins: each forward computes what the student's class of that name computes."""

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from trainer.fused.products import linear, on_cpu

HIDDEN = 1e30  # taken from a score that must not count; far from overflow


class FusedLinear:
    """nn.Linear."""

    weight: Tensor
    bias: Tensor | None

    def forward(self, x: Float[Tensor, "... d"]) -> Float[Tensor, "... n"]:
        """The same map."""
        return linear(x, self.weight, self.bias)


class FusedEmbedding:
    """TokenEmbedding: one look-up whose backward does not sort the ids."""

    weight: Tensor
    d_model: int

    def forward(self, ids: Int[Tensor, "B N"]) -> Float[Tensor, "B N d_model"]:
        """The scaled vectors."""
        return F.embedding(ids, self.weight) * self.weight.shape[1] ** 0.5


class FusedLayerNorm:
    """LayerNorm: torch's, in one pass."""

    gain: Tensor
    bias: Tensor
    eps: float

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """The normalised tokens."""
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


class FusedFeedForward:
    """FeedForward: the ReLU within the first map."""

    inner: nn.Linear
    outer: nn.Linear

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """The same network."""
        hidden = linear(x, self.inner.weight, self.inner.bias, relu=True)
        return linear(hidden, self.outer.weight, self.outer.bias)


class FusedAttention:
    """MultiHeadAttention: one product for the projections of one input; no weights returned."""

    num_heads: int
    w_q: nn.Linear
    w_k: nn.Linear
    w_v: nn.Linear
    w_o: nn.Linear

    def forward(
        self,
        query: Float[Tensor, "B n d_model"],
        key: Float[Tensor, "B m d_model"],
        value: Float[Tensor, "B m d_model"],
        mask: Bool[Tensor, "... #n m"] | None = None,  # True = may attend
    ) -> tuple[Float[Tensor, "B n d_model"], None]:
        """The output; nobody who calls this asks for the weights."""
        if query is key and key is value:
            wide = (_project(query, self.w_q, self.w_k, self.w_v),)
        elif key is value:
            wide = (_project(query, self.w_q), _project(key, self.w_k, self.w_v))
        else:
            wide = (_project(query, self.w_q), _project(key, self.w_k), _project(value, self.w_v))
        merged = _attend(wide, self.num_heads, mask)
        return linear(merged, self.w_o.weight, self.w_o.bias), None


def _project(x: Float[Tensor, "B n d_model"], *maps: nn.Linear) -> Float[Tensor, "B n wide"]:
    """What the maps make of x, side by side, by one matrix product."""
    if len(maps) == 1:
        return linear(x, maps[0].weight, maps[0].bias)
    bias = None if maps[0].bias is None else torch.cat([part.bias for part in maps])
    return linear(x, torch.cat([part.weight for part in maps]), bias)


def _attend(
    wide: tuple[Float[Tensor, "B N wide"], ...],
    num_heads: int,
    mask: Bool[Tensor, "... #n m"] | None,
) -> Float[Tensor, "B n d_model"]:
    """Scaled dot-product attention of queries, keys and values that lie side by side in `wide`."""
    if on_cpu(*wide) and (mask is None or mask.dim() <= 3):
        return cast(Tensor, _Attention.apply(*_additive(mask), num_heads, *wide))
    q, k, v = _per_head(wide, num_heads)
    if mask is not None:
        # a query that sees no key may see all: some kernels would give NaN, and nobody reads it
        mask = (mask | ~mask.any(-1, keepdim=True)).unsqueeze(-3)  # the same for every head
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (B, H, n, d_k)
    return heads.transpose(1, 2).flatten(-2)


def _per_head(wide: Sequence[Tensor], num_heads: int) -> list[Float[Tensor, "B H n d_k"]]:
    """Views of queries, keys and values."""
    d_k = sum(tensor.shape[-1] for tensor in wide) // (3 * num_heads)
    return [
        part
        for tensor in wide
        for part in tensor.unflatten(-1, (-1, num_heads, d_k)).permute(2, 0, 3, 1, 4).unbind(0)
    ]


def _additive(
    mask: Bool[Tensor, "... #n m"] | None,
) -> tuple[Float[Tensor, "... #n m"] | None, Float[Tensor, "... #n 1"] | None]:
    """What to add to the scores, and 0 for queries that see no key, 1 for others (None: no such).

    All layers get the same mask, so the answer stays on it.
    """
    if mask is None:
        return None, None
    kept = getattr(mask, "_graded_additive", None)
    if kept is None or kept[0] != mask._version:
        numbers = mask.to(torch.float32)
        seeing = mask.any(-1, keepdim=True)
        visible = None if bool(seeing.all()) else seeing.to(torch.float32)
        kept = (mask._version, (numbers - 1) * HIDDEN, visible)
        setattr(mask, "_graded_additive", kept)  # noqa: B010  (a tensor has no such attribute)
    return kept[1], kept[2]


class _Attention(torch.autograd.Function):
    """Attention by one batched product a head: for sentences faster than torch's fused kernel.

    In fp32 throughout, under autocast too: rounding would cost more time than it saves.

    The heads lie side by side in memory; a batched product reads one head of them in place.
    """

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(
        ctx: Any, hidden: Tensor | None, visible: Tensor | None, num_heads: int, *wide: Tensor
    ) -> Float[Tensor, "B n d_model"]:
        """Attend; hidden and visible as `_additive` gives them."""
        q, k, v = (part.transpose(0, 1) for part in _per_head(wide, num_heads))  # (H, B, n, d_k)
        scale = q.shape[-1] ** -0.5
        p = torch.empty(*q.shape[:3], k.shape[2])  # (H, B, n, m)
        for head in range(num_heads):
            keys = k[head].transpose(1, 2)
            torch.baddbmm(p[head], q[head], keys, beta=0, alpha=scale, out=p[head])
        if hidden is not None:
            p += hidden
        p = p.softmax(-1)
        if visible is not None:
            p *= visible
        heads = torch.empty(*q.shape[:3], v.shape[-1])
        for head in range(num_heads):
            torch.bmm(p[head], v[head], out=heads[head])
        ctx.save_for_backward(p, *wide)
        return heads.permute(1, 2, 0, 3).flatten(2)

    @staticmethod
    @once_differentiable
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of what is `wide`."""
        p, *wide = ctx.saved_tensors
        num_heads = len(p)
        q, k, v = (part.transpose(0, 1) for part in _per_head(wide, num_heads))
        of_wide = [torch.empty(tensor.shape) for tensor in wide]
        of_q, of_k, of_v = (part.transpose(0, 1) for part in _per_head(of_wide, num_heads))
        g = gradients[0].unflatten(-1, (num_heads, -1)).permute(2, 0, 1, 3)  # (H, B, n, d_v)
        of_p = torch.empty_like(p)
        for head in range(num_heads):
            torch.bmm(g[head], v[head].transpose(1, 2), out=of_p[head])
            of_v[head] = torch.bmm(p[head].transpose(1, 2), g[head])
        of_scores = torch.ops.aten._softmax_backward_data(of_p, p, -1, torch.float32)
        of_scores *= q.shape[-1] ** -0.5
        for head in range(num_heads):
            of_q[head] = torch.bmm(of_scores[head], k[head])
            of_k[head] = torch.bmm(of_scores[head].transpose(1, 2), q[head])
        return None, None, None, *of_wide


class FusedGenerator:
    """Generator: logits without a bias."""

    weight: Tensor

    def forward(self, x: Float[Tensor, "B N d_model"]) -> Float[Tensor, "B N vocab_size"]:
        """The logits."""
        return linear(x, self.weight)


class FusedDropout:
    """nn.Dropout on a CPU, with 16 random bits an entry in place of torch's slow coin flips.

    The probability is rounded to a multiple of 2**-16 and what is kept is scaled by the rounded
    one, so that the mean is exact. The bits come from torch's own generator.
    """

    p: float
    training: bool

    def forward(self, x: Tensor) -> Tensor:
        """Zero each entry with probability p, and scale the others by 1 / (1 - p)."""
        dropped = round(self.p * 2**16)
        if not self.training or dropped == 0:
            return x
        if dropped == 2**16 or not on_cpu(x):
            return F.dropout(x, self.p, training=True)
        return cast(Tensor, _Dropout.apply(x, dropped))


class _Dropout(torch.autograd.Function):
    """Dropout of fp32 numbers on a CPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int) -> Tensor:
        """Drop each entry with probability dropped / 2**16."""
        words = torch.empty(math.ceil(x.numel() / 4), dtype=torch.int64).random_(-(2**63), None)
        bits = words.view(torch.int16)[: x.numel()].view(x.shape)  # uniform in -2**15 .. 2**15 - 1
        keep = torch.empty(x.shape)  # 0 or 1 / (1 - p)
        torch.ge(bits, dropped - 2**15, out=keep)
        ctx.keep = keep.mul_(2**16 / (2**16 - dropped))
        return x * ctx.keep

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Pass on what was kept, scaled."""
        return gradients[0] * ctx.keep, None
