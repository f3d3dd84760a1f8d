"""The Transformer's parts on torch's own modules, behind the signatures and masks of this course.

Notebooks use these in place of what another notebook builds, so that no exercise depends on the
answers to an earlier one. Masks are boolean and True means "may attend", throughout.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


def attention(
    q: Float[Tensor, "... N d_k"],
    k: Float[Tensor, "... M d_k"],
    v: Float[Tensor, "... M d_v"],
    mask: Bool[Tensor, "... N M"] | None = None,
) -> Float[Tensor, "... N d_v"]:
    """Scaled dot-product attention from N queries to M keys, computed by torch.

    Args:
        q: queries.
        k: keys.
        v: values, one per key.
        mask: True = may attend; any shape that broadcasts to (..., N, M).

    Raises:
        ValueError: if the mask is not boolean.

    Source: Vaswani et al. (2017), section 3.2.1.
    """
    if mask is not None:
        _require_boolean(mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class MultiHeadAttention(nn.Module):
    """Multi-head attention around `torch.nn.MultiheadAttention`.

    Args:
        d_model: width of queries, keys, values and output.
        num_heads: number of heads, each of width d_model / num_heads.
        dropout: share of the weights that training sets to 0.

    Raises:
        ValueError: if `d_model` is not divisible by `num_heads`.

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        _require_divisible(d_model, num_heads)
        self.num_heads = num_heads
        self.inner = nn.MultiheadAttention(d_model, num_heads, dropout, batch_first=True)

    def forward(
        self,
        q: Float[Tensor, "B N d_model"],
        k: Float[Tensor, "B M d_model"],
        v: Float[Tensor, "B M d_model"],
        mask: Bool[Tensor, "... N M"] | None = None,
    ) -> tuple[Float[Tensor, "B N d_model"], Float[Tensor, "B num_heads N M"]]:
        """Attend from q to k; return the output and the weights of every head.

        Args:
            q: what asks.
            k: what is compared with.
            v: what is mixed.
            mask: True = may attend; (N, M), (B, N, M) or (B, num_heads, N, M), or any of these
                with a 1 in place of a size.

        Raises:
            ValueError: if the mask is not boolean, has no such shape, or leaves some query
                without any key.
        """
        forbidden = _forbidden(mask, q, k, self.num_heads)
        return self.inner(q, k, v, attn_mask=forbidden, average_attn_weights=False)


class EncoderLayer(nn.Module):
    """One encoder layer around `torch.nn.TransformerEncoderLayer`.

    Args:
        d_model: width of the tokens.
        num_heads: number of attention heads.
        d_ff: width inside the feed-forward network.
        dropout: as in the paper, after each sub-layer, and inside attention and feed-forward.
        norm_first: normalise before each sub-layer ("pre-norm"); the paper does it after.

    Raises:
        ValueError: if `d_model` is not divisible by `num_heads`.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        _require_divisible(d_model, num_heads)
        self.num_heads = num_heads
        self.inner = nn.TransformerEncoderLayer(
            d_model, num_heads, d_ff, dropout, batch_first=True, norm_first=norm_first
        )

    def forward(
        self, x: Float[Tensor, "B N d_model"], mask: Bool[Tensor, "... N N"] | None = None
    ) -> Float[Tensor, "B N d_model"]:
        """Pass tokens through self-attention and feed-forward.

        Args:
            x: the tokens.
            mask: True = may attend; shapes and errors as for `MultiHeadAttention`.
        """
        return self.inner(x, src_mask=_forbidden(mask, x, x, self.num_heads))


class DecoderLayer(nn.Module):
    """One decoder layer around `torch.nn.TransformerDecoderLayer`.

    Args and errors as for `EncoderLayer`.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        _require_divisible(d_model, num_heads)
        self.num_heads = num_heads
        self.inner = nn.TransformerDecoderLayer(
            d_model, num_heads, d_ff, dropout, batch_first=True, norm_first=norm_first
        )

    def forward(
        self,
        x: Float[Tensor, "B N d_model"],
        memory: Float[Tensor, "B M d_model"],
        mask: Bool[Tensor, "... N N"] | None = None,
        memory_mask: Bool[Tensor, "... N M"] | None = None,
    ) -> Float[Tensor, "B N d_model"]:
        """Pass target tokens through self-attention, cross-attention and feed-forward.

        Args:
            x: the target's tokens. Nothing hides the later ones unless `mask` does.
            memory: the encoder's output.
            mask: which target tokens may attend to which; shapes as for `MultiHeadAttention`.
            memory_mask: which target tokens may attend to which source tokens.
        """
        return self.inner(
            x,
            memory,
            tgt_mask=_forbidden(mask, x, x, self.num_heads),
            memory_mask=_forbidden(memory_mask, x, memory, self.num_heads),
        )


def _forbidden(
    mask: Tensor | None, q: Tensor, k: Tensor, num_heads: int
) -> Bool[Tensor, "B*num_heads N M"] | None:
    """What torch's modules want: True = may not attend, the heads of a sentence side by side."""
    if mask is None:
        return None
    _require_boolean(mask)
    full = (q.shape[0], num_heads, q.shape[1], k.shape[1])
    per_head = mask.unsqueeze(1) if mask.ndim == 3 else mask  # (B, N, M) -> (B, 1, N, M)
    try:
        allowed = per_head.expand(full)
    except RuntimeError as error:
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}; it must broadcast to "
            f"(batch, heads, queries, keys) = {full}, or to that without heads"
        ) from error
    lost = (~allowed.any(-1)).nonzero()
    if len(lost):
        sentence, _, query = lost[0][:3].tolist()
        raise ValueError(f"query {query} of sentence {sentence} may attend to no key at all")
    return ~allowed.reshape(-1, *full[2:])


def _require_boolean(mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise ValueError(f"mask has dtype {mask.dtype}; it must be torch.bool, True = may attend")


def _require_divisible(d_model: int, num_heads: int) -> None:
    if num_heads < 1 or d_model % num_heads:
        raise ValueError(f"d_model ({d_model}) must be divisible by num_heads ({num_heads})")
