"""Wrong answers to the exercise on the decoder, as students write them, and what each one shows."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import misconception
from lab.blocks import FeedForward, LayerNorm, MultiHeadAttention

# 7.1 The decoder's two masks


@misconception(
    "decoder-masks",
    id="DEC1",
    fails=["decoder-masks-target"],
    read="07_decoder#decoder-mask",
)
def padding_only(target, source, *, target_pad_id, source_pad_id):
    """Your target mask hides padding but not the future; in training the decoder would read off
    the very token that it is to predict.
    """
    n = target.shape[1]
    real = (target != target_pad_id).unsqueeze(1)
    return real.expand(-1, n, -1), (source != source_pad_id).unsqueeze(1)


@misconception(
    "decoder-masks",
    id="DEC2",
    fails=["decoder-masks-target"],
    read="07_decoder#decoder-mask",
)
def upper_triangle(target, source, *, target_pad_id, source_pad_id):
    """Your target mask keeps the upper triangle: with queries as rows that shows the future and
    hides the past.
    """
    n = target.shape[1]
    not_earlier = torch.ones(n, n, dtype=torch.bool).triu()
    real = (target != target_pad_id).unsqueeze(1)
    return not_earlier & real, (source != source_pad_id).unsqueeze(1)


@misconception(
    "decoder-masks",
    id="DEC3",
    fails=["decoder-masks-target"],
    read="07_decoder#decoder-mask",
)
def without_diagonal(target, source, *, target_pad_id, source_pad_id):
    """Your target mask leaves out the diagonal, so the first token may attend to nothing at all; a
    token may see itself.
    """
    n = target.shape[1]
    earlier = torch.ones(n, n, dtype=torch.bool).tril(-1)
    real = (target != target_pad_id).unsqueeze(1)
    return earlier & real, (source != source_pad_id).unsqueeze(1)


@misconception(
    "decoder-masks",
    id="DEC4",
    fails=["decoder-masks-target"],
    read="07_decoder#decoder-mask",
)
def one_step_ahead(target, source, *, target_pad_id, source_pad_id):
    """Your target mask lets each token see one step ahead, which is just what its row is to
    predict.
    """
    n = target.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril(1)
    real = (target != target_pad_id).unsqueeze(1)
    return mask & real, (source != source_pad_id).unsqueeze(1)


@misconception(
    "decoder-masks",
    id="DEC5",
    fails=["decoder-masks-target"],
    read="07_decoder#decoder-mask",
)
def either_condition(target, source, *, target_pad_id, source_pad_id):
    """You join the two conditions with "or"; a key must be both not later and no padding, so it is
    "and".
    """
    n = target.shape[1]
    not_later = torch.ones(n, n, dtype=torch.bool).tril()
    real = (target != target_pad_id).unsqueeze(1)
    return not_later | real, (source != source_pad_id).unsqueeze(1)


@misconception(
    "decoder-masks",
    id="DEC5b",
    fails=["decoder-masks-target"],
    read="07_decoder#decoder-mask",
)
def causal_only(target, source, *, target_pad_id, source_pad_id):
    """Your target mask hides the future but not the padding; padded keys should be hidden from
    every query.
    """
    b, n = target.shape
    not_later = torch.ones(n, n, dtype=torch.bool).tril()
    return not_later.expand(b, n, n), (source != source_pad_id).unsqueeze(1)


@misconception(
    "decoder-masks",
    id="DEC6",
    fails=["decoder-masks-target"],
    read="07_decoder#decoder-mask",
)
def padded_queries(target, source, *, target_pad_id, source_pad_id):
    """You hide the rows of padded queries, which leaves rows without any key; padding hides keys,
    that is columns.
    """
    n = target.shape[1]
    not_later = torch.ones(n, n, dtype=torch.bool).tril()
    real = (target != target_pad_id).unsqueeze(-1)
    return not_later & real, (source != source_pad_id).unsqueeze(1)


@misconception(
    "decoder-masks",
    id="DEC6b",
    fails=["decoder-masks-memory"],
    read="07_decoder#decoder-mask",
)
def memory_mask_on_its_side(target, source, *, target_pad_id, source_pad_id):
    """Your memory mask is (B, M, 1), as if source tokens asked; they are the keys: (B, 1, M)."""
    n = target.shape[1]
    not_later = torch.ones(n, n, dtype=torch.bool).tril()
    real = (target != target_pad_id).unsqueeze(1)
    return not_later & real, (source != source_pad_id).unsqueeze(-1)


@misconception(
    "decoder-masks",
    id="DEC7",
    fails=["decoder-masks-target"],
    read="07_decoder#decoder-mask",
)
def source_padding_id_for_the_target(target, source, *, target_pad_id, source_pad_id):
    """You look for the source's padding id in the target; each language has its own, and the
    other's may be a word.
    """
    n = target.shape[1]
    not_later = torch.ones(n, n, dtype=torch.bool).tril()
    real = (target != source_pad_id).unsqueeze(1)
    return not_later & real, (source != source_pad_id).unsqueeze(1)


@misconception(
    "decoder-masks",
    id="DEC7b",
    fails=["decoder-masks-memory"],
    read="07_decoder#decoder-mask",
)
def target_padding_id_for_the_source(target, source, *, target_pad_id, source_pad_id):
    """You look for the target's padding id in the source; each language has its own, and the
    other's may be a word.
    """
    n = target.shape[1]
    not_later = torch.ones(n, n, dtype=torch.bool).tril()
    real = (target != target_pad_id).unsqueeze(1)
    return not_later & real, (source != target_pad_id).unsqueeze(1)


@misconception(
    "decoder-masks",
    id="DEC8",
    fails=["decoder-masks-memory"],
    read="07_decoder#whole-source",
)
def causal_source(target, source, *, target_pad_id, source_pad_id):
    """Your memory mask is causal: the first word could see the first source token only. The source
    is known in full, so just its padding is hidden.
    """
    n, m = target.shape[1], source.shape[1]
    real = (target != target_pad_id).unsqueeze(1)
    seen = (source != source_pad_id).unsqueeze(1)
    target_mask = torch.ones(n, n, dtype=torch.bool).tril() & real
    return target_mask, torch.ones(n, m, dtype=torch.bool).tril() & seen


@misconception(
    "decoder-masks",
    id="DEC16",
    fails=["decoder-masks-target", "decoder-masks-memory"],
    read="07_decoder#decoder-mask",
)
def true_hides(target, source, *, target_pad_id, source_pad_id):
    """Your masks are True where a token is hidden, as PyTorch's layers want it; in this course True
    means: may attend.
    """
    n = target.shape[1]
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    padding = (target == target_pad_id).unsqueeze(1)
    return later | padding, (source == source_pad_id).unsqueeze(1)


# 7.2 A decoder layer


@misconception(
    "decoder-layer",
    target="DecoderLayer.__init__",
    id="DEC12",
    fails=["decoder-layer-parts", "decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def one_attention_for_both(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
    """Self-attention and cross-attention are one and the same module in your layer; each needs its
    own weights.
    """
    nn.Module.__init__(self)
    self.self_attention = MultiHeadAttention(d_model, num_heads)
    self.cross_attention = self.self_attention
    self.feed_forward = FeedForward(d_model, d_ff)
    self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))
    self.dropout = nn.Dropout(dropout)
    self.norm_first = norm_first


@misconception(
    "decoder-layer",
    target="DecoderLayer.__init__",
    id="DEC17",
    fails=["decoder-layer-parts"],
    read="07_decoder#three-sub-layers",
)
def one_norm_for_all(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
    """Your three sub-layers share one layer norm; each has a gain and a bias of its own."""
    nn.Module.__init__(self)
    self.self_attention = MultiHeadAttention(d_model, num_heads)
    self.cross_attention = MultiHeadAttention(d_model, num_heads)
    self.feed_forward = FeedForward(d_model, d_ff)
    self.norm1 = self.norm2 = self.norm3 = LayerNorm(d_model)
    self.dropout = nn.Dropout(dropout)
    self.norm_first = norm_first


@misconception(
    "decoder-layer",
    target="DecoderLayer.__init__",
    id="DEC18",
    fails=[
        "decoder-layer-parts",
        "decoder-layer-post-norm",
        "decoder-layer-pre-norm",
        "decoder-layer-masks",
        "decoder-layer-dropout",
    ],
    read="07_decoder#three-sub-layers",
)
def dropout_written_out(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
    """Your layer drops with probability 0.1 whatever is asked for; hand the argument on."""
    nn.Module.__init__(self)
    self.self_attention = MultiHeadAttention(d_model, num_heads)
    self.cross_attention = MultiHeadAttention(d_model, num_heads)
    self.feed_forward = FeedForward(d_model, d_ff)
    self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))
    self.dropout = nn.Dropout(0.1)
    self.norm_first = norm_first


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC1b",
    fails=["decoder-layer-pre-norm", "decoder-layer-masks"],
    read="07_decoder#decoder-mask",
)
def target_mask_forgotten(self, x, memory, target_mask=None, memory_mask=None):
    """Your self-attention does not get target_mask, so every output depends on the tokens that
    follow it.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own)[0])
        asked = self.norm2(x)
        x = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC1c",
    fails=["decoder-layer-pre-norm", "decoder-layer-masks"],
    read="07_decoder#decoder-mask",
)
def target_mask_in_training_only(self, x, memory, target_mask=None, memory_mask=None):
    """Your layer uses target_mask in training only; when it writes, too, no token may look at later
    ones, or it computes something else than it has learned.
    """
    target_mask = target_mask if self.training else None
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked = self.norm2(x)
        x = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC19",
    fails=["decoder-layer-pre-norm", "decoder-layer-masks"],
    read="07_decoder#decoder-mask",
)
def memory_mask_forgotten(self, x, memory, target_mask=None, memory_mask=None):
    """Your cross-attention does not get memory_mask, so the target attends to the padding of the
    source.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        x = x + self.dropout(self.cross_attention(self.norm2(x), memory, memory)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC8b",
    fails=["decoder-layer-pre-norm", "decoder-layer-masks"],
    read="07_decoder#whole-source",
)
def causal_cross_attention(self, x, memory, target_mask=None, memory_mask=None):
    """Your cross-attention hides later source tokens too; the source is known in full before the
    first word is written, so only memory_mask applies.
    """
    seen = memory_mask
    if target_mask is not None:
        earlier = torch.ones(x.shape[1], memory.shape[1], dtype=torch.bool).tril()
        seen = earlier if seen is None else earlier & seen
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        x = x + self.dropout(self.cross_attention(self.norm2(x), memory, memory, seen)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, seen)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC8c",
    fails=["decoder-layer-pre-norm", "decoder-layer-masks"],
    read="07_decoder#whole-source",
)
def masks_exchanged(self, x, memory, target_mask=None, memory_mask=None):
    """You hand target_mask to the cross-attention and memory_mask to the self-attention; it is the
    other way round.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, memory_mask)[0])
        asked = self.norm2(x)
        x = x + self.dropout(self.cross_attention(asked, memory, memory, target_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, memory_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, target_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC9",
    fails=[
        "decoder-layer-post-norm",
        "decoder-layer-pre-norm",
        "decoder-layer-masks",
        "decoder-layer-dropout",
    ],
    read="07_decoder#cross-attention",
)
def source_asks_target(self, x, memory, target_mask=None, memory_mask=None):
    """In your cross-attention the source asks and the target answers; the queries should come from
    the target, keys and values from memory.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked = self.norm2(x)
        x = x + self.dropout(self.cross_attention(memory, asked, asked, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(memory, x, x, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="MHA13",
    fails=[
        "decoder-layer-post-norm",
        "decoder-layer-pre-norm",
        "decoder-layer-masks",
        "decoder-layer-dropout",
    ],
    read="07_decoder#cross-attention",
)
def target_asks_itself_twice(self, x, memory, target_mask=None, memory_mask=None):
    """Both attentions in your layer look at the target; keys and values of the second come from
    memory, or the source is never read.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked = self.norm2(x)
        x = x + self.dropout(self.cross_attention(asked, asked, asked, target_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, x, x, target_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC10",
    fails=[
        "decoder-layer-post-norm",
        "decoder-layer-pre-norm",
        "decoder-layer-masks",
        "decoder-layer-dropout",
    ],
    read="07_decoder#three-sub-layers",
)
def cross_attention_first(self, x, memory, target_mask=None, memory_mask=None):
    """Your layer reads the source before the target has looked at itself; self-attention comes
    first, then cross-attention.
    """
    if self.norm_first:
        asked = self.norm2(x)
        x = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC10b",
    fails=[
        "decoder-layer-post-norm",
        "decoder-layer-pre-norm",
        "decoder-layer-masks",
        "decoder-layer-dropout",
    ],
    read="07_decoder#cross-attention",
)
def no_cross_attention(self, x, memory, target_mask=None, memory_mask=None):
    """Your layer never reads memory: an encoder layer with a mask. The second sub-layer is
    cross-attention.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC13",
    fails=[
        "decoder-layer-post-norm",
        "decoder-layer-pre-norm",
        "decoder-layer-masks",
        "decoder-layer-dropout",
    ],
    read="07_decoder#incremental-decoder",
)
def norm_over_the_steps(self, x, memory, target_mask=None, memory_mask=None):
    """Your norm takes mean and variance over all tokens of a sentence, later ones included, so the
    future leaks past the mask; normalise each token alone.
    """

    def over_tokens(norm, x):
        return F.layer_norm(x, x.shape[1:]) * norm.gain + norm.bias

    if self.norm_first:
        own = over_tokens(self.norm1, x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked = over_tokens(self.norm2, x)
        x = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(over_tokens(self.norm3, x)))
    x = over_tokens(self.norm1, x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    read = self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0])
    x = over_tokens(self.norm2, x + read)
    return over_tokens(self.norm3, x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC14",
    fails=[
        "decoder-layer-post-norm",
        "decoder-layer-pre-norm",
        "decoder-layer-masks",
        "decoder-layer-dropout",
    ],
    read="07_decoder#three-sub-layers",
)
def no_residual_around_cross_attention(self, x, memory, target_mask=None, memory_mask=None):
    """Around your cross-attention there is no residual: what the target has gathered about itself
    is overwritten by the source. Add the sub-layer's input.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked = self.norm2(x)
        x = self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES1",
    fails=["decoder-layer-post-norm", "decoder-layer-masks", "decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def always_pre_norm(self, x, memory, target_mask=None, memory_mask=None):
    """Your layer normalises first, whatever norm_first says; the paper's order, and the default, is
    the norm after the sum.
    """
    own = self.norm1(x)
    x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
    x = x + self.dropout(self.cross_attention(self.norm2(x), memory, memory, memory_mask)[0])
    return x + self.dropout(self.feed_forward(self.norm3(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES1b",
    fails=["decoder-layer-pre-norm", "decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def always_post_norm(self, x, memory, target_mask=None, memory_mask=None):
    """Your layer ignores norm_first: with True, each norm belongs before its sub-layer and not
    after the sum.
    """
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES2",
    fails=["decoder-layer-post-norm", "decoder-layer-masks", "decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def norm_inside_the_sum(self, x, memory, target_mask=None, memory_mask=None):
    """In post-norm you normalise what the sub-layer returns and then add x; the sum is what should
    be normalised.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked = self.norm2(x)
        x = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = x + self.norm1(self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = x + self.norm2(self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return x + self.norm3(self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES3",
    fails=[
        "decoder-layer-post-norm",
        "decoder-layer-pre-norm",
        "decoder-layer-masks",
        "decoder-layer-dropout",
    ],
    read="07_decoder#three-sub-layers",
)
def residual_from_the_layers_input(self, x, memory, target_mask=None, memory_mask=None):
    """Each of your sums starts from the layer's input x; it should start from what the sub-layer
    before has left.
    """
    if self.norm_first:
        own = self.norm1(x)
        first = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked = self.norm2(first)
        second = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(second)))
    first = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    read = self.cross_attention(first, memory, memory, memory_mask)[0]
    second = self.norm2(x + self.dropout(read))
    return self.norm3(x + self.dropout(self.feed_forward(second)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES4",
    fails=["decoder-layer-pre-norm", "decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def sum_with_the_normalised_input(self, x, memory, target_mask=None, memory_mask=None):
    """In pre-norm you add the sub-layer's output to the normalised input; add it to x as it came,
    or the residual path is broken.
    """
    if self.norm_first:
        x = self.norm1(x)
        x = x + self.dropout(self.self_attention(x, x, x, target_mask)[0])
        x = self.norm2(x)
        x = x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0])
        x = self.norm3(x)
        return x + self.dropout(self.feed_forward(x))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC20",
    fails=["decoder-layer-pre-norm", "decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def memory_normalised_too(self, x, memory, target_mask=None, memory_mask=None):
    """In pre-norm you normalise memory with the target's norm; only the queries pass through
    norm2, memory comes in ready.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked, read = self.norm2(x), self.norm2(memory)
        x = x + self.dropout(self.cross_attention(asked, read, read, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES5",
    fails=[
        "decoder-layer-post-norm",
        "decoder-layer-pre-norm",
        "decoder-layer-masks",
        "decoder-layer-dropout",
    ],
    read="07_decoder#three-sub-layers",
)
def no_residuals(self, x, memory, target_mask=None, memory_mask=None):
    """Your sub-layers replace x in place of adding to it; each has a residual connection around
    it.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = self.dropout(self.self_attention(own, own, own, target_mask)[0])
        x = self.dropout(self.cross_attention(self.norm2(x), memory, memory, memory_mask)[0])
        return self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES6",
    fails=["decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def dropout_of_the_sum(self, x, memory, target_mask=None, memory_mask=None):
    """You drop entries of the sum, and with them the residual; drop what the sub-layer returns,
    before it is added.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = self.dropout(x + self.self_attention(own, own, own, target_mask)[0])
        x = self.dropout(x + self.cross_attention(self.norm2(x), memory, memory, memory_mask)[0])
        return self.dropout(x + self.feed_forward(self.norm3(x)))
    x = self.norm1(self.dropout(x + self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(self.dropout(x + self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(self.dropout(x + self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES6b",
    fails=["decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def cross_attention_without_dropout(self, x, memory, target_mask=None, memory_mask=None):
    """Nothing is dropped from your cross-attention; dropout serves all three sub-layers."""
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        x = x + self.cross_attention(self.norm2(x), memory, memory, memory_mask)[0]
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES6c",
    fails=["decoder-layer-pre-norm", "decoder-layer-masks", "decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def drops_in_evaluation_too(self, x, memory, target_mask=None, memory_mask=None):
    """Your layer drops in evaluation too; F.dropout does so unless told, self.dropout knows the
    mode.
    """
    p = self.dropout.p
    if self.norm_first:
        own = self.norm1(x)
        x = x + F.dropout(self.self_attention(own, own, own, target_mask)[0], p)
        x = x + F.dropout(self.cross_attention(self.norm2(x), memory, memory, memory_mask)[0], p)
        return x + F.dropout(self.feed_forward(self.norm3(x)), p)
    x = self.norm1(x + F.dropout(self.self_attention(x, x, x, target_mask)[0], p))
    x = self.norm2(x + F.dropout(self.cross_attention(x, memory, memory, memory_mask)[0], p))
    return self.norm3(x + F.dropout(self.feed_forward(x), p))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES6d",
    fails=["decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def one_choice_for_all_tokens(self, x, memory, target_mask=None, memory_mask=None):
    """You drop the same features of every token of a sentence; dropout chooses anew for each
    token.
    """

    def drop(output):
        return output * self.dropout(torch.ones_like(output[:, :1]))

    if self.norm_first:
        own = self.norm1(x)
        x = x + drop(self.self_attention(own, own, own, target_mask)[0])
        x = x + drop(self.cross_attention(self.norm2(x), memory, memory, memory_mask)[0])
        return x + drop(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + drop(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + drop(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + drop(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES6l",
    fails=["decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def dropout_before_the_network_too(self, x, memory, target_mask=None, memory_mask=None):
    """You drop from what goes into the feed-forward network as well; only what comes out of a
    sub-layer goes through dropout.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked = self.norm2(x)
        x = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.dropout(self.norm3(x))))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(self.dropout(x))))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="RES7",
    fails=["decoder-layer-post-norm", "decoder-layer-pre-norm", "decoder-layer-dropout"],
    read="07_decoder#three-sub-layers",
)
def adds_in_place(self, x, memory, target_mask=None, memory_mask=None):
    """You add with +=, which changes the caller's x and breaks the gradient; make a new tensor, x =
    x + ...
    """
    if self.norm_first:
        own = self.norm1(x)
        x += self.dropout(self.self_attention(own, own, own, target_mask)[0])
        x += self.dropout(self.cross_attention(self.norm2(x), memory, memory, memory_mask)[0])
        x += self.dropout(self.feed_forward(self.norm3(x)))
        return x
    x += self.dropout(self.self_attention(x, x, x, target_mask)[0])
    x = self.norm1(x)
    x = x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0])
    x = self.norm2(x)
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@misconception(
    "decoder-layer",
    target="DecoderLayer.forward",
    id="DEC21",
    fails=["decoder-layer-post-norm", "decoder-layer-pre-norm"],
    read="07_decoder#gradient-into-memory",
)
def memory_detached(self, x, memory, target_mask=None, memory_mask=None):
    """You cut memory out of the gradient; the encoder learns through cross-attention only, so it
    would never learn.
    """
    memory = memory.detach()
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked = self.norm2(x)
        x = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


# 7.3 The stack


@misconception(
    "decoder",
    target="Decoder.__init__",
    id="ENC1",
    fails=["decoder-layers"],
    read="07_decoder#decoder-stack",
)
def one_layer_many_times(self, make_layer, num_layers, norm=None):
    """Your stack is one layer, run several times over the same weights; make each layer anew."""
    nn.Module.__init__(self)
    self.layers = nn.ModuleList([make_layer()] * num_layers)
    self.norm = norm


@misconception(
    "decoder",
    target="Decoder.__init__",
    id="ENC2",
    fails=["decoder-layers", "decoder-forward"],
    read="07_decoder#decoder-stack",
)
def copies_of_one_layer(self, make_layer, num_layers, norm=None):
    """Your layers are copies of one, so all start with the same weights; call make_layer once for
    each.
    """
    nn.Module.__init__(self)
    first = make_layer()
    self.layers = nn.ModuleList(copy.deepcopy(first) for _ in range(num_layers))
    self.norm = norm


@misconception(
    "decoder",
    target="Decoder.__init__",
    id="ENC3",
    fails=["decoder-layers", "decoder-forward"],
    read="07_decoder#decoder-stack",
)
def plain_list(self, make_layer, num_layers, norm=None):
    """Your layers stand in a Python list, where PyTorch does not see them: no optimiser finds their
    parameters. Use nn.ModuleList.
    """
    nn.Module.__init__(self)
    self.layers = [make_layer() for _ in range(num_layers)]
    self.norm = norm


@misconception(
    "decoder",
    target="Decoder.__init__",
    id="ENC4",
    fails=["decoder-layers", "decoder-forward"],
    read="07_decoder#decoder-stack",
)
def norm_forgotten(self, make_layer, num_layers, norm=None):
    """Your stack drops the norm that it was handed; pre-norm layers need it after the last one."""
    nn.Module.__init__(self)
    self.layers = nn.ModuleList(make_layer() for _ in range(num_layers))
    self.norm = None


@misconception(
    "decoder",
    target="Decoder.forward",
    id="ENC4b",
    fails=["decoder-forward"],
    read="07_decoder#decoder-stack",
)
def norm_in_every_layer(self, x, memory, target_mask=None, memory_mask=None):
    """Your stack applies its norm after every layer; it comes once, after the last."""
    for layer in self.layers:
        x = layer(x, memory, target_mask, memory_mask)
        if self.norm is not None:
            x = self.norm(x)
    return x


@misconception(
    "decoder",
    target="Decoder.forward",
    id="ENC8",
    fails=["decoder-forward"],
    read="07_decoder#decoder-stack",
)
def every_layer_gets_the_first_input(self, x, memory, target_mask=None, memory_mask=None):
    """Each of your layers gets the stack's input, so only the last one counts; feed it the output
    of the layer before.
    """
    out = x
    for layer in self.layers:
        out = layer(x, memory, target_mask, memory_mask)
    return out if self.norm is None else self.norm(out)


@misconception(
    "decoder",
    target="Decoder.forward",
    id="DEC11",
    fails=["decoder-forward"],
    read="07_decoder#decoder-stack",
)
def memory_replaced(self, x, memory, target_mask=None, memory_mask=None):
    """From the second layer on, your memory is no longer the encoder's output; every layer gets the
    same one.
    """
    for layer in self.layers:
        x = layer(x, memory, target_mask, memory_mask)
        memory = x
    return x if self.norm is None else self.norm(x)


@misconception(
    "decoder",
    target="Decoder.forward",
    id="DEC11b",
    fails=["decoder-forward"],
    read="07_decoder#decoder-stack",
)
def target_for_memory(self, x, memory, target_mask=None, memory_mask=None):
    """Your stack hands the target's input on as memory; the encoder's output is never read."""
    start = x
    for layer in self.layers:
        x = layer(x, start, target_mask, memory_mask)
    return x if self.norm is None else self.norm(x)


@misconception(
    "decoder",
    target="Decoder.forward",
    id="ENC5",
    fails=["decoder-forward"],
    read="07_decoder#decoder-stack",
)
def masks_for_the_first_layer(self, x, memory, target_mask=None, memory_mask=None):
    """Only your first layer gets the masks; in the others, the future and the padding are open."""
    for i, layer in enumerate(self.layers):
        x = layer(x, memory, target_mask, memory_mask) if i == 0 else layer(x, memory)
    return x if self.norm is None else self.norm(x)


@misconception(
    "decoder",
    target="Decoder.forward",
    id="DEC8d",
    fails=["decoder-forward"],
    read="07_decoder#decoder-stack",
)
def masks_in_the_wrong_order(self, x, memory, target_mask=None, memory_mask=None):
    """Your stack hands the two masks on in the wrong order; the target's comes first."""
    for layer in self.layers:
        x = layer(x, memory, memory_mask, target_mask)
    return x if self.norm is None else self.norm(x)


# 7.4 A layer that learns, and is wrong


@misconception(
    "layer-causes",
    id="DBG1",
    fails=["layer-causes-lines"],
    read="07_decoder#decoder-mask",
)
def cross_attention_for_the_future():
    """You blame the cross-attention for the future. It reads the source, which is known in full;
    the later tokens of the target come through a mask that is turned over.
    """
    return {"future": 3, "padding": 3, "forgets": 4, "idle": 6}


@misconception(
    "layer-causes",
    id="DBG2",
    fails=["layer-causes-lines"],
    read="07_decoder#whole-source",
)
def self_attention_for_the_padding():
    """You blame the self-attention for the source's padding. It never sees the source; look where
    the memory comes in, and with which mask.
    """
    return {"future": 1, "padding": 1, "forgets": 4, "idle": 6}


@misconception(
    "layer-causes",
    id="DBG3",
    fails=["layer-causes-lines"],
    read="07_decoder#three-sub-layers",
)
def the_attention_forgets():
    """You blame the call of the cross-attention for what is forgotten. Its result is all that is
    kept, a line later, where x should be added.
    """
    return {"future": 1, "padding": 3, "forgets": 3, "idle": 6}


@misconception(
    "layer-causes",
    id="DBG4",
    fails=["layer-causes-lines"],
    read="07_decoder#three-sub-layers",
)
def the_second_norm_idle():
    """You name the line of the norm that works twice. The idle one is the third, and the line that
    should call it is the last.
    """
    return {"future": 1, "padding": 3, "forgets": 4, "idle": 4}


@misconception(
    "layer-mended",
    id="DBG5",
    fails=["layer-mended-values"],
    read="07_decoder#decoder-mask",
)
def mask_still_turned(x, memory, target_mask, memory_mask, parts):
    """Your self-attention still gets the mask turned over, so each token sees itself and the
    future.
    """
    y = parts["self_attention"](x, x, x, target_mask.transpose(-2, -1))
    x = parts["norm1"](x + y)
    y = parts["cross_attention"](x, memory, memory, memory_mask)
    x = parts["norm2"](x + y)
    return parts["norm3"](x + parts["feed_forward"](x))


@misconception(
    "layer-mended",
    id="DBG6",
    fails=["layer-mended-values"],
    read="07_decoder#whole-source",
)
def source_still_unmasked(x, memory, target_mask, memory_mask, parts):
    """Your cross-attention still gets no mask and reads the source's padding."""
    y = parts["self_attention"](x, x, x, target_mask)
    x = parts["norm1"](x + y)
    y = parts["cross_attention"](x, memory, memory, None)
    x = parts["norm2"](x + y)
    return parts["norm3"](x + parts["feed_forward"](x))


@misconception(
    "layer-mended",
    id="DBG7",
    fails=["layer-mended-values"],
    read="07_decoder#three-sub-layers",
)
def second_sum_still_missing(x, memory, target_mask, memory_mask, parts):
    """Your second sub-layer still has no sum: what the tokens were is lost, and only what was read
    from the source goes on.
    """
    y = parts["self_attention"](x, x, x, target_mask)
    x = parts["norm1"](x + y)
    y = parts["cross_attention"](x, memory, memory, memory_mask)
    x = parts["norm2"](y)
    return parts["norm3"](x + parts["feed_forward"](x))


@misconception(
    "layer-mended",
    id="DBG8",
    fails=["layer-mended-values"],
    read="07_decoder#three-sub-layers",
)
def norm_still_used_twice(x, memory, target_mask, memory_mask, parts):
    """Your layer still uses its second norm twice and the third one never."""
    y = parts["self_attention"](x, x, x, target_mask)
    x = parts["norm1"](x + y)
    y = parts["cross_attention"](x, memory, memory, memory_mask)
    x = parts["norm2"](x + y)
    return parts["norm2"](x + parts["feed_forward"](x))


@misconception(
    "layer-mended",
    id="DBG9",
    fails=["layer-mended-values"],
    read="07_decoder#three-sub-layers",
)
def first_sum_in_place(x, memory, target_mask, memory_mask, parts):
    """You add with +=, which changes the caller's x; make a new tensor, x = x + ..."""
    x += parts["self_attention"](x, x, x, target_mask)
    x = parts["norm1"](x)
    x = parts["norm2"](x + parts["cross_attention"](x, memory, memory, memory_mask))
    return parts["norm3"](x + parts["feed_forward"](x))


# 7.5 From vectors to words


@misconception(
    "generator",
    target="Generator.forward",
    id="TF8",
    fails=["generator-logits", "generator-tie"],
    read="07_decoder#logits",
)
def probabilities(self, x):
    """You return probabilities; the loss wants logits and takes the softmax itself."""
    return torch.softmax(x @ self.weight.T, dim=-1)


@misconception(
    "generator",
    target="Generator.forward",
    id="TF8b",
    fails=["generator-logits", "generator-tie"],
    read="07_decoder#logits",
)
def log_probabilities(self, x):
    """You return log-probabilities; the logits are the plain dot products, without log-softmax."""
    return torch.log_softmax(x @ self.weight.T, dim=-1)


@misconception(
    "generator",
    target="Generator.forward",
    id="TOK5",
    fails=["generator-logits", "generator-tie"],
    read="07_decoder#weight-tying",
)
def scaled_like_the_embedding(self, x):
    """You multiply the logits by sqrt(d_model); that factor belongs to looking ids up, not to the
    output layer.
    """
    return (x @ self.weight.T) * math.sqrt(self.weight.shape[1])


@misconception(
    "generator",
    target="Generator.__init__",
    id="GEN1",
    fails=["generator-logits"],
    read="07_decoder#logits",
)
def start_of_spread_one(self, d_model, vocab_size):
    """Your weight starts with standard deviation 1, so the first logits are sqrt(d_model) too large
    and the softmax is certain of nonsense; divide by sqrt(d_model).
    """
    nn.Module.__init__(self)
    self.weight = nn.Parameter(torch.randn(vocab_size, d_model))


@misconception(
    "generator",
    target="Generator.__init__",
    id="GEN4",
    fails=["generator-logits"],
    read="07_decoder#logits",
)
def all_positive(self, d_model, vocab_size):
    """You draw the start values with torch.rand, which gives numbers between 0 and 1, none of them
    negative; torch.randn gives normal ones around 0.
    """
    nn.Module.__init__(self)
    self.weight = nn.Parameter(torch.rand(vocab_size, d_model) / math.sqrt(d_model))


@misconception(
    "generator",
    target="Generator.tie",
    id="TOK5b",
    fails=["generator-tie"],
    read="07_decoder#weight-tying",
)
def numbers_copied(self, weight):
    """You copy the embedding's numbers; after the first step of the optimiser the two differ. Both
    should be one Parameter.
    """
    if weight.shape != self.weight.shape:
        raise ValueError(f"{tuple(weight.shape)} differs from {tuple(self.weight.shape)}")
    with torch.no_grad():
        self.weight.copy_(weight)


@misconception(
    "generator",
    target="Generator.tie",
    id="TOK6",
    fails=["generator-tie"],
    read="07_decoder#weight-tying",
)
def wrapped_anew(self, weight):
    """You wrap the embedding's weight in a new Parameter: same memory, but two gradients, and a
    model that moves or is loaded tears them apart. Assign the Parameter itself.
    """
    if weight.shape != self.weight.shape:
        raise ValueError(f"{tuple(weight.shape)} differs from {tuple(self.weight.shape)}")
    self.weight = nn.Parameter(weight)


@misconception(
    "generator",
    target="Generator.tie",
    id="TOK6b",
    fails=["generator-tie"],
    read="07_decoder#weight-tying",
)
def data_only(self, weight):
    """You share the numbers through .data but keep two Parameters; the embedding's never gets the
    output layer's gradient.
    """
    if weight.shape != self.weight.shape:
        raise ValueError(f"{tuple(weight.shape)} differs from {tuple(self.weight.shape)}")
    self.weight.data = weight.data


@misconception(
    "generator",
    target="Generator.tie",
    id="TOK16",
    fails=["generator-tie"],
    read="07_decoder#weight-tying",
)
def any_shape_goes(self, weight):
    """Your tie takes a weight of any shape; one of another vocabulary would only fail later, in
    forward, or not at all. Raise a ValueError.
    """
    self.weight = weight


@misconception(
    "generator",
    target="Generator.tie",
    id="GEN5",
    fails=["generator-tie"],
    read="07_decoder#weight-tying",
)
def drawn_anew(self, weight):
    """Your tie draws new numbers into the weight, so an embedding that has learned forgets it all;
    leave its numbers as they are.
    """
    if weight.shape != self.weight.shape:
        raise ValueError(f"{tuple(weight.shape)} differs from {tuple(self.weight.shape)}")
    self.weight = weight
    nn.init.normal_(self.weight, std=weight.shape[1] ** -0.5)


@misconception(
    "generator",
    target="Generator.tie",
    id="GEN6",
    fails=["generator-tie"],
    read="07_decoder#weight-tying",
)
def taken_before_compared(self, weight):
    """Your tie takes the weight before it compares the shapes: after the ValueError the generator
    holds the wrong one. Compare first.
    """
    old, self.weight = self.weight, weight
    if weight.shape != old.shape:
        raise ValueError(f"{tuple(weight.shape)} differs from {tuple(old.shape)}")


@misconception(
    "generator",
    target="Generator",
    id="GEN2",
    fails=["generator-logits", "generator-tie"],
    read="07_decoder#logits",
)
class WithBias(nn.Module):
    """Your output layer has a bias; the paper's, shared with the embedding, is one matrix and
    nothing else.
    """

    def __init__(self, d_model, vocab_size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)

    def tie(self, weight):
        if weight.shape != self.weight.shape:
            raise ValueError(f"{tuple(weight.shape)} differs from {tuple(self.weight.shape)}")
        self.weight = weight


@misconception(
    "generator",
    target="Generator",
    id="GEN3",
    fails=["generator-logits", "generator-tie"],
    read="07_decoder#weight-tying",
)
class OnItsSide(nn.Module):
    """Your weight is (d_model, vocab_size); an embedding has one row for each token, so a shared
    matrix is (vocab_size, d_model).
    """

    def __init__(self, d_model, vocab_size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, vocab_size) / math.sqrt(d_model))

    def forward(self, x):
        return x @ self.weight

    def tie(self, weight):
        if weight.shape[::-1] != self.weight.shape:
            raise ValueError(f"{tuple(weight.shape)} does not fit {tuple(self.weight.shape)}")
        self.weight = nn.Parameter(weight.T)


# 7.6 The test that finds a leak


@misconception(
    "incremental-error",
    id="INC1",
    fails=["incremental-error-values", "incremental-error-leaks"],
    read="07_decoder#incremental-decoder",
)
def last_prefix_only(f, x):
    """You take away the last token only; a leak between earlier tokens stays unseen. Try every
    length.
    """
    n = x.shape[1] - 1
    return (f(x[:, :n]) - f(x)[:, :n]).abs().max().item()


@misconception(
    "incremental-error",
    id="INC2",
    fails=["incremental-error-values", "incremental-error-leaks"],
    read="07_decoder#incremental-decoder",
)
def first_token_only(f, x):
    """You compare the first token only; a leak that starts at a later row stays unseen. Try every
    length.
    """
    return (f(x[:, :1]) - f(x)[:, :1]).abs().max().item()


@misconception(
    "incremental-error",
    id="INC3",
    fails=["incremental-error-values", "incremental-error-leaks"],
    read="07_decoder#incremental-decoder",
)
def without_absolute_value(f, x):
    """You take the largest difference with its sign, so a change downwards counts as none; take the
    absolute value first.
    """
    whole = f(x)
    return max((f(x[:, :n]) - whole[:, :n]).max().item() for n in range(1, x.shape[1]))


@misconception(
    "incremental-error",
    id="INC4",
    fails=["incremental-error-values", "incremental-error-leaks"],
    read="07_decoder#incremental-decoder",
)
def mean_change(f, x):
    """You average the changes; a leak in one place is thinned out by all places without one. Take
    the largest.
    """
    whole = f(x)
    lengths = range(1, x.shape[1])
    errors = [(f(x[:, :n]) - whole[:, :n]).abs().mean().item() for n in lengths]
    return sum(errors) / len(errors)


@misconception(
    "incremental-error",
    id="INC5",
    fails=["incremental-error-values", "incremental-error-leaks"],
    read="07_decoder#incremental-decoder",
)
def sentences_for_tokens(f, x):
    """You shorten the batch, not the sentences: x[:n] are the first n sentences. Tokens are the
    second axis.
    """
    whole = f(x)
    errors = [(f(x[:n]) - whole[:n]).abs().max().item() for n in range(1, x.shape[0] + 1)]
    return max(errors)


@misconception(
    "incremental-error",
    id="INC6",
    fails=["incremental-error-values", "incremental-error-leaks"],
    read="07_decoder#incremental-decoder",
)
def compares_with_the_end(f, x):
    """You compare the prefix with the last n rows of the whole; the same tokens are its first n
    rows.
    """
    whole = f(x)
    lengths = range(1, x.shape[1])
    return max((f(x[:, :n]) - whole[:, -n:]).abs().max().item() for n in lengths)


@misconception(
    "incremental-error",
    id="INC7",
    fails=["incremental-error-values", "incremental-error-leaks"],
    read="07_decoder#incremental-decoder",
)
def later_tokens_zeroed(f, x):
    """You set later tokens to 0 where they should be taken away, and in the caller's x besides; a
    token of zeros is still a token, and counts in a mean or a softmax.
    """
    whole = f(x.clone())
    errors = []
    for n in range(x.shape[1] - 1, 0, -1):
        x[:, n:] = 0
        errors.append((f(x)[:, :n] - whole[:, :n]).abs().max().item())
    return max(errors)


@misconception(
    "incremental-error",
    id="INC8",
    fails=["incremental-error-values", "incremental-error-leaks"],
    read="07_decoder#incremental-decoder",
)
def one_length_too_few(f, x):
    """You stop one length too early: the longest prefix has all tokens but the last, and range
    leaves its end out by itself.
    """
    whole = f(x)
    lengths = range(1, x.shape[1] - 1)
    return max((f(x[:, :n]) - whole[:, :n]).abs().max().item() for n in lengths)


@misconception(
    "incremental-error",
    id="INC9",
    fails=["incremental-error-values"],
    read="07_decoder#incremental-decoder",
)
def sentence_by_sentence(f, x):
    """You give f one sentence at a time; a function that looks at other sentences too, a batch norm
    say, then seems to leak. Shorten the sentences and keep the batch.
    """
    whole = f(x)
    return max(
        (f(x[b : b + 1, :n]) - whole[b : b + 1, :n]).abs().max().item()
        for b in range(len(x))
        for n in range(1, x.shape[1])
    )


# 7.8 Many sentences in one row


@misconception(
    "packed-masks",
    id="PCK1",
    fails=["packed-masks-few"],
    read="07_decoder#decoder-mask",
)
def padding_sees_padding(target_pairs, source_pairs):
    """In yours padding attends to padding: its number, -1, equals itself. It belongs to no pair."""
    n = target_pairs.shape[1]
    earlier = torch.ones(n, n, dtype=torch.bool).tril()
    same = target_pairs[:, :, None] == target_pairs[:, None]
    return same & earlier, target_pairs[:, :, None] == source_pairs[:, None]


@misconception(
    "packed-masks",
    id="PCK2",
    fails=["packed-masks-few", "packed-masks-alone"],
    read="07_decoder#decoder-mask",
)
def sentences_see_the_ones_before(target_pairs, source_pairs):
    """In yours a sentence sees all that stand before it in its row; it may see only its own."""
    n = target_pairs.shape[1]
    earlier = torch.ones(n, n, dtype=torch.bool).tril()
    real = target_pairs >= 0
    asks = torch.where(real, target_pairs, -2)[:, :, None]
    return real[:, :, None] & real[:, None] & earlier, asks == source_pairs[:, None]


@misconception(
    "packed-masks",
    id="PCK3",
    fails=["packed-masks-few", "packed-masks-alone"],
    read="07_decoder#decoder-mask",
)
def without_the_triangle(target_pairs, source_pairs):
    """Your target mask shows a sentence its own future: the condition "not later" is missing."""
    asks = torch.where(target_pairs < 0, -2, target_pairs)[:, :, None]
    return asks == target_pairs[:, None], asks == source_pairs[:, None]


@misconception(
    "packed-masks",
    id="PCK4",
    fails=["packed-masks-few", "packed-masks-alone"],
    read="07_decoder#whole-source",
)
def every_source_in_the_row(target_pairs, source_pairs):
    """Your memory mask shows each token all sources of its row; it may read its own pair's only."""
    n = target_pairs.shape[1]
    earlier = torch.ones(n, n, dtype=torch.bool).tril()
    asks = torch.where(target_pairs < 0, -2, target_pairs)[:, :, None]
    reads = (target_pairs >= 0)[:, :, None] & (source_pairs >= 0)[:, None]
    return (asks == target_pairs[:, None]) & earlier, reads


@misconception(
    "packed-masks",
    id="PCK5",
    fails=["packed-masks-few", "packed-masks-alone"],
    read="07_decoder#decoder-mask",
)
def not_even_oneself(target_pairs, source_pairs):
    """In yours a token may not attend to itself, so that the first of a sentence sees nothing."""
    n = target_pairs.shape[1]
    earlier = torch.ones(n, n, dtype=torch.bool).tril(-1)
    asks = torch.where(target_pairs < 0, -2, target_pairs)[:, :, None]
    return (asks == target_pairs[:, None]) & earlier, asks == source_pairs[:, None]


@misconception(
    "packed-masks",
    id="PCK6",
    fails=["packed-masks-few", "packed-masks-alone"],
    read="07_decoder#decoder-mask",
)
def hidden_where_true(target_pairs, source_pairs):
    """Your masks are True where nothing may be seen; True means: may attend."""
    n = target_pairs.shape[1]
    earlier = torch.ones(n, n, dtype=torch.bool).tril()
    asks = torch.where(target_pairs < 0, -2, target_pairs)[:, :, None]
    return ~((asks == target_pairs[:, None]) & earlier), asks != source_pairs[:, None]


@misconception(
    "packed-masks",
    id="PCK7",
    fails=["packed-masks-few", "packed-masks-alone"],
    read="07_decoder#whole-source",
)
def triangle_over_the_source(target_pairs, source_pairs):
    """Your memory mask hides source tokens that stand later in the row than the query. The whole
    source has been read before the first word is written.
    """
    n, m = target_pairs.shape[1], source_pairs.shape[1]
    asks = torch.where(target_pairs < 0, -2, target_pairs)[:, :, None]
    earlier = torch.ones(n, n, dtype=torch.bool).tril()
    before = torch.ones(n, m, dtype=torch.bool).tril()
    return (asks == target_pairs[:, None]) & earlier, (asks == source_pairs[:, None]) & before


@misconception(
    "places-within",
    id="PCK8",
    fails=["places-within-values"],
    read="07_decoder#decoder-mask",
)
def places_in_the_row(pairs):
    """You give the places in the row; each sentence has to be counted from 0 again."""
    places = torch.arange(pairs.shape[1]).expand_as(pairs)
    return torch.where(pairs < 0, 0, places)


@misconception(
    "places-within",
    id="PCK9",
    fails=["places-within-values"],
    read="07_decoder#decoder-mask",
)
def padding_counted(pairs):
    """Yours counts through the padding as if it were a sentence; it gets 0."""
    places = torch.arange(pairs.shape[1])
    begins = torch.ones_like(pairs, dtype=torch.bool)
    begins[:, 1:] = pairs[:, 1:] != pairs[:, :-1]
    return places - torch.where(begins, places, 0).cummax(1).values


@misconception(
    "places-within",
    id="PCK10",
    fails=["places-within-values"],
    read="07_decoder#decoder-mask",
)
def counted_from_one(pairs):
    """Yours counts places from 1; they start at 0."""
    places = torch.arange(pairs.shape[1])
    begins = torch.ones_like(pairs, dtype=torch.bool)
    begins[:, 1:] = pairs[:, 1:] != pairs[:, :-1]
    first = torch.where(begins, places, 0).cummax(1).values
    return torch.where(pairs < 0, 0, places - first + 1)


@misconception(
    "places-within",
    id="PCK11",
    fails=["places-within-values"],
    read="07_decoder#decoder-mask",
)
def rows_run_on(pairs):
    """In yours a row's first sentence goes on counting where the row above has ended, if both have
    the same number. Each row begins anew.
    """
    flat = pairs.flatten()
    places = torch.arange(len(flat))
    begins = torch.ones_like(flat, dtype=torch.bool)
    begins[1:] = flat[1:] != flat[:-1]
    first = torch.where(begins, places, 0).cummax(0).values
    return torch.where(flat < 0, 0, places - first).reshape(pairs.shape)


@misconception(
    "places-within",
    id="PCK12",
    fails=["places-within-values"],
    read="07_decoder#decoder-mask",
)
def numbers_taken_for_an_order(pairs):
    """Yours is right only where the numbers of the pairs rise along the row; they are names."""
    places = torch.arange(pairs.shape[1])
    begins = torch.zeros_like(pairs, dtype=torch.bool)
    begins[:, 1:] = pairs[:, 1:] > pairs[:, :-1]
    first = torch.where(begins, places, 0).cummax(1).values
    return torch.where(pairs < 0, 0, places - first)
