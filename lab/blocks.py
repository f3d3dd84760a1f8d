"""The Transformer's parts on torch's own code, behind the names and masks of this course.

Notebooks use these in place of what another notebook builds, so that no exercise depends on the
answers to an earlier one. What torch has is called, not written out: for how a part works, see
the book. Masks are boolean and True means "may attend", throughout. Students get this file, so no
line of it is one of an answer's.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import reduce
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


def scaled_dot_product_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... m d_k"],
    v: Float[Tensor, "... m d_v"],
    mask: Bool[Tensor, "... #n m"] | None = None,
) -> tuple[Float[Tensor, "... n d_v"], Float[Tensor, "... n m"]]:
    """Attend from n queries to m keys; return the output and the weights.

    Args:
        q: queries.
        k: keys.
        v: values, one per key.
        mask: True = may attend; any shape that broadcasts to (..., n, m). A query that may see no
            key gets weights and output 0.

    Raises:
        ValueError: if the mask is not boolean.

    Source: Vaswani et al. (2017), section 3.2.1.
    """
    if mask is not None:
        _require_boolean(mask)
    m, d_v = v.shape[-2:]
    # Torch returns no weights, but what it makes of an identity matrix of values are the weights.
    identity = torch.eye(m, dtype=v.dtype, device=v.device).expand(*v.shape[:-1], m)
    values = torch.cat([v, identity], dim=-1)  # (..., m, d_v + m)
    output, weights = F.scaled_dot_product_attention(q, k, values, mask).split([d_v, m], dim=-1)
    return output, weights


def causal_mask(n: int) -> Bool[Tensor, "n n"]:
    """Where n queries may attend to n keys that come no later than they do, by torch's own mask."""
    return nn.Transformer.generate_square_subsequent_mask(n) == 0


def padding_mask(ids: Int[Tensor, "B N"], pad_id: int) -> Bool[Tensor, "B 1 N"]:
    """Where a sentence has a token and no padding, with an axis for the queries."""
    return torch.isin(ids, pad_id, invert=True)[:, None]


class MultiHeadAttention(nn.Module):
    """Multi-head attention on torch's own, without biases and without dropout.

    Args:
        d_model: width of queries, keys, values and output.
        num_heads: number of heads, each of width d_k = d_model / num_heads.

    Raises:
        ValueError: if `d_model` is not divisible by `num_heads`.

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    w_q: nn.Linear
    w_k: nn.Linear
    w_v: nn.Linear
    w_o: nn.Linear

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            said = f"d_model ({d_model}) must be divisible by num_heads ({num_heads})"
            raise ValueError(said)
        self.num_heads = num_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            self.add_module(name, nn.Linear(d_model, d_model, bias=False))

    def split(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B H n d_k"]:
        """Give every head its part of the columns: head 0 the first d_k, head 1 the next, ..."""
        return torch.stack(x.chunk(self.num_heads, dim=-1), dim=1)

    def merge(self, x: Float[Tensor, "B H n d_k"]) -> Float[Tensor, "B n d_model"]:
        """Undo `split`: put the heads side by side."""
        return torch.cat(x.unbind(dim=1), dim=-1)

    def forward(
        self,
        query: Float[Tensor, "B n d_model"],
        key: Float[Tensor, "B m d_model"],
        value: Float[Tensor, "B m d_model"],
        mask: Bool[Tensor, "... #n m"] | None = None,
    ) -> tuple[Float[Tensor, "B n d_model"], Float[Tensor, "B H n m"]]:
        """Attend from query to key; return the output and the weights of every head.

        Args:
            query: what asks.
            key: what is compared with.
            value: what is mixed.
            mask: True = may attend; any shape that broadcasts to (B, n, m). A query that may see
                no key gets weights and output 0.

        Raises:
            ValueError: if the mask is not boolean, or does not broadcast to (B, n, m).
        """
        forbidden, blind = _forbidden(mask, query, key)
        output, weights = F.multi_head_attention_forward(
            query.transpose(0, 1),
            key.transpose(0, 1),
            value.transpose(0, 1),
            embed_dim_to_check=query.shape[-1],
            num_heads=self.num_heads,
            in_proj_weight=None,
            in_proj_bias=None,
            bias_k=None,
            bias_v=None,
            add_zero_attn=False,
            dropout_p=0.0,
            out_proj_weight=self.w_o.weight,
            out_proj_bias=None,
            attn_mask=None if forbidden is None else forbidden.repeat_interleave(self.num_heads, 0),
            use_separate_proj_weight=True,
            q_proj_weight=self.w_q.weight,
            k_proj_weight=self.w_k.weight,
            v_proj_weight=self.w_v.weight,
            average_attn_weights=False,
        )
        assert weights is not None  # need_weights is True by default
        output = output.transpose(0, 1)
        if blind is None:
            return output, weights
        return output.masked_fill(blind, 0), weights.masked_fill(blind.unsqueeze(1), 0)


class LayerNorm(nn.Module):
    """Normalise each token over its d_model numbers, on torch's `layer_norm`.

    Args:
        d_model: width of the tokens.
        eps: added to the variance.

    Source: Ba et al. (2016).
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gain, self.bias = (nn.Parameter(torch.full((d_model,), n)) for n in (1.0, 0.0))
        self.eps = eps

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Return x, normalised, times the gain, plus the bias."""
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


class FeedForward(nn.Sequential):
    """The position-wise feed-forward network: `inner`, ReLU, `outer`.

    Args:
        d_model: width of the tokens.
        d_ff: width inside.

    Source: Vaswani et al. (2017), section 3.3.
    """

    inner: nn.Linear
    outer: nn.Linear

    def __init__(self, d_model: int, d_ff: int) -> None:
        inner, outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        super().__init__(OrderedDict(inner=inner, relu=nn.ReLU(), outer=outer))

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return what comes out of the three, one after the other; the same shape."""
        return super().forward(x)


def _add_parts(
    layer: nn.Module,
    attentions: Sequence[str],
    norms: Sequence[str],
    sizes: tuple[int, int, int],
    dropout: float,
) -> None:
    """Give a layer what it consists of: attentions, the feed-forward network, norms, dropout."""
    d_model, num_heads, d_ff = sizes
    for name in attentions:
        layer.add_module(name, MultiHeadAttention(d_model, num_heads))
    layer.add_module("feed_forward", FeedForward(d_model, d_ff))
    for name in norms:
        layer.add_module(name, LayerNorm(d_model))
    layer.add_module("dropout", nn.Dropout(dropout))


class EncoderLayer(nn.TransformerEncoderLayer):
    """One encoder layer: the parts above, put together by torch's layer.

    Args:
        d_model: width of the tokens.
        num_heads: number of attention heads.
        d_ff: width inside the feed-forward network.
        dropout: probability of dropping an entry of what a sub-layer returns.
        norm_first: normalise before each sub-layer ("pre-norm"); the paper does it after.

    Raises:
        ValueError: if `d_model` is not divisible by `num_heads`.

    Source: Vaswani et al. (2017), section 3.1.
    """

    self_attention: MultiHeadAttention
    feed_forward: FeedForward
    # keeps torch's layer from its fast path, which knows torch's own parts only
    self_attn = SimpleNamespace(batch_first=False)  # pyright: ignore[reportAssignmentType]

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        norm_first: bool = False,
    ) -> None:
        nn.Module.__init__(self)  # skips torch's layer, which would make its own parts
        sizes = (d_model, num_heads, d_ff)
        _add_parts(self, ["self_attention"], ["norm1", "norm2"], sizes, dropout)
        self.norm_first = norm_first

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: Float[Tensor, "B n d_model"], mask: Bool[Tensor, "... #n n"] | None = None
    ) -> Float[Tensor, "B n d_model"]:
        """Pass tokens through self-attention and feed-forward.

        Args:
            x: the tokens.
            mask: True = may attend; shapes and errors as for `MultiHeadAttention`.
        """
        if mask is not None:
            _require_boolean(mask)
        return super().forward(x, src_mask=None if mask is None else ~mask)

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, *_: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        """What torch's layer calls; by now its mask holds 0 = may attend and -inf = may not."""
        mask = None if attn_mask is None else attn_mask == 0
        return self.dropout(self.self_attention(x, x, x, mask)[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        fed = self.feed_forward(x)
        return self.dropout(fed)


class _Stack(nn.Module):
    """Layers, one after the other.

    Args:
        make_layer: called once for every layer, so that each has its own weights.
        num_layers: how many.
        norm: comes after the last layer; pre-norm stacks need one.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self, make_layer: Callable[[], nn.Module], num_layers: int, norm: nn.Module | None = None
    ) -> None:
        super().__init__()
        made = [make_layer() for _ in range(num_layers)]
        self.layers = nn.ModuleList(made)
        self.norm = norm

    def _through(self, x: Tensor, *same: Tensor | None) -> Tensor:
        """What comes out above the last layer; all layers get the same besides x."""
        out = reduce(lambda below, layer: layer(below, *same), self.layers, x)
        return self.norm(out) if self.norm else out


class Encoder(_Stack):
    """A stack of encoder layers.

    Args:
        make_layer: called once for every layer, so that each has its own weights.
        num_layers: how many.
        norm: comes after the last layer; pre-norm stacks need one.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def forward(
        self, x: Float[Tensor, "B n d_model"], mask: Bool[Tensor, "... #n n"] | None = None
    ) -> Float[Tensor, "B n d_model"]:
        """Pass tokens through all layers; every layer sees the same mask."""
        return self._through(x, mask)


class DecoderLayer(nn.TransformerDecoderLayer):
    """One decoder layer: the parts above, put together by torch's layer.

    Args and errors as for `EncoderLayer`.

    Source: Vaswani et al. (2017), section 3.1.
    """

    self_attention: MultiHeadAttention
    cross_attention: MultiHeadAttention
    feed_forward: FeedForward

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        norm_first: bool = False,
    ) -> None:
        nn.Module.__init__(self)  # skips torch's layer, which would make its own parts
        attentions, norms = ["self_attention", "cross_attention"], ["norm1", "norm2", "norm3"]
        _add_parts(self, attentions, norms, (d_model, num_heads, d_ff), dropout)
        self.norm_first = norm_first

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        x: Float[Tensor, "B n d_model"],
        memory: Float[Tensor, "B m d_model"],
        target_mask: Bool[Tensor, "... #n n"] | None = None,
        memory_mask: Bool[Tensor, "... #n m"] | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """Pass target tokens through self-attention, cross-attention and feed-forward.

        Args:
            x: the target's tokens. Nothing hides the later ones unless `target_mask` does.
            memory: the encoder's output.
            target_mask: which target tokens may attend to which; as for `MultiHeadAttention`.
            memory_mask: which target tokens may attend to which source tokens.
        """
        return super().forward(x, memory, tgt_mask=target_mask, memory_mask=memory_mask)

    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, *_: Tensor | bool | None) -> Tensor:
        return self.dropout(self.self_attention(x, x, x, attn_mask)[0])

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, *_: Tensor | bool | None
    ) -> Tensor:
        return self.dropout(self.cross_attention(x, mem, mem, attn_mask)[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        fed = self.feed_forward(x)
        return self.dropout(fed)


class Decoder(_Stack):
    """A stack of decoder layers; arguments as for `Encoder`.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def forward(
        self,
        x: Float[Tensor, "B n d_model"],
        memory: Float[Tensor, "B m d_model"],
        target_mask: Bool[Tensor, "... #n n"] | None = None,
        memory_mask: Bool[Tensor, "... #n m"] | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """Pass target tokens through all layers; every layer sees the same memory and masks."""
        return self._through(x, memory, target_mask, memory_mask)


class Generator(nn.Module):
    """The output layer: one logit for every token of the vocabulary, without bias.

    Args:
        d_model: width of the tokens.
        vocab_size: number of logits.

    Source: Vaswani et al. (2017), section 3.4.
    """

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__()
        drawn = nn.Linear(d_model, vocab_size, bias=False)
        self.weight = drawn.weight  # (vocab_size, d_model)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... vocab_size"]:
        """Return the logits; no softmax."""
        return F.linear(x, self.weight)

    def tie(self, weight: nn.Parameter) -> None:
        """Use this very matrix from now on, such as an embedding's.

        Raises:
            ValueError: if it has another shape.
        """
        if weight.shape != self.weight.shape:
            given, wanted = tuple(weight.shape), tuple(self.weight.shape)
            raise ValueError(
                f"weight has shape {given}; it must be (vocab_size, d_model) = {wanted}"
            )
        self.weight = weight


class TokenEmbedding(nn.Embedding):
    """One vector for every token of the vocabulary, on torch's `Embedding`.

    Its numbers are drawn with variance 1, the size that the rest of the model expects, and are
    looked up as they are.

    Args:
        vocab_size: number of different ids.
        d_model: width of the vectors.

    Source: Vaswani et al. (2017), section 3.4.
    """

    weight: nn.Parameter

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__(vocab_size, d_model)

    def forward(self, ids: Int[Tensor, "B N"]) -> Float[Tensor, "B N d_model"]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the vectors of these ids."""
        return super().forward(ids)


class PositionalEncoding(nn.Module):
    """Add a fixed table of positions to the vectors of the tokens.

    Args:
        encoding: the table, (max_len, d_model), one row a position.
        dropout: probability of dropping an entry of the sum.

    Source: Vaswani et al. (2017), sections 3.5 and 5.4.
    """

    encoding: Tensor

    def __init__(self, encoding: Float[Tensor, "max_len d_model"], dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer(name="encoding", tensor=encoding, persistent=False)
        self.dropout = nn.Dropout(p=dropout)

    def forward(
        self, x: Float[Tensor, "B n d_model"], offset: int = 0
    ) -> Float[Tensor, "B n d_model"]:
        """Add the rows of the positions offset, offset + 1, ..., and drop.

        Raises:
            ValueError: if the table has too few rows.
        """
        end = offset + x.shape[1]
        positions = torch.arange(offset, end, device=x.device)
        if end > len(self.encoding):
            raise ValueError(
                f"offset + n ({end}) must not exceed max_len "
                f"({len(self.encoding)}), the number of rows of the table"
            )
        return self.dropout(x + F.embedding(positions, self.encoding))


def _forbidden(
    mask: Tensor | None, query: Tensor, key: Tensor
) -> tuple[Bool[Tensor, "B n m"] | None, Bool[Tensor, "B n 1"] | None]:
    """What torch wants (True = may not attend), and which queries may see no key at all.

    Torch's weights would be NaN for such a query, so it may see all keys; the caller blanks what
    comes of it.
    """
    if mask is None:
        return None, None
    _require_boolean(mask)
    full = (query.shape[0], query.shape[1], key.shape[1])
    try:
        allowed = mask.expand(full)
    except RuntimeError as error:
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}; it must broadcast to "
            f"(batch, queries, keys) = {full}"
        ) from error
    blind = ~allowed.any(-1, keepdim=True)
    return ~(allowed | blind), blind


def _require_boolean(mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise ValueError(f"mask has dtype {mask.dtype}; it must be torch.bool, True = may attend")
