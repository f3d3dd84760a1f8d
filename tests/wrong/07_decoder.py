"""Wrong answers to the exercise on the decoder that nobody gets a name for; all must lose."""

import torch
from torch import nn

from lab.answers import variant
from lab.blocks import FeedForward, LayerNorm, MultiHeadAttention


@variant("decoder-masks")
def first_token_always_seen(target, source, *, target_pad_id, source_pad_id):
    n = target.shape[1]
    not_later = torch.ones(n, n, dtype=torch.bool).tril()
    real = (target != target_pad_id).unsqueeze(1)
    real[:, :, 0] = True
    return not_later & real, (source != source_pad_id).unsqueeze(1)


@variant("decoder-layer", target="DecoderLayer.forward")
def dropped_without_rescaling(self, x, memory, target_mask=None, memory_mask=None):
    def drop(y):
        return self.dropout(y) * (1 - self.dropout.p if self.training else 1)

    if self.norm_first:
        own = self.norm1(x)
        x = x + drop(self.self_attention(own, own, own, target_mask)[0])
        x = x + drop(self.cross_attention(self.norm2(x), memory, memory, memory_mask)[0])
        return x + drop(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + drop(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + drop(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + drop(self.feed_forward(x)))


@variant("decoder-layer", target="DecoderLayer.forward")
def post_norm_without_rescaling(self, x, memory, target_mask=None, memory_mask=None):
    def drop(y):
        return self.dropout(y) * (1 - self.dropout.p if self.training else 1)

    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        own = self.norm2(x)
        x = x + self.dropout(self.cross_attention(own, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + drop(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + drop(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + drop(self.feed_forward(x)))


@variant("decoder-layer", target="DecoderLayer.forward")
def memory_dropped_too(self, x, memory, target_mask=None, memory_mask=None):
    memory = self.dropout(memory)
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        own = self.norm2(x)
        x = x + self.dropout(self.cross_attention(own, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@variant("decoder", target="Decoder.forward")
def memory_cut_off_after_the_first_layer(self, x, memory, target_mask=None, memory_mask=None):
    for layer in self.layers:
        x = layer(x, memory, target_mask, memory_mask)
        memory = memory.detach()
    return x if self.norm is None else self.norm(x)


@variant("generator", target="Generator.__init__")
def one_spread_for_every_width(self, d_model, vocab_size):
    nn.Module.__init__(self)
    self.weight = nn.Parameter(0.2 * torch.randn(vocab_size, d_model))


@variant("decoder-layer", target="DecoderLayer.forward")
def query_of_the_memory_dropped_too(self, x, memory, target_mask=None, memory_mask=None):
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked = self.dropout(self.norm2(x))
        x = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    asked = self.dropout(x)
    x = self.norm2(x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@variant("decoder-layer", target="DecoderLayer.forward")
def memory_dropped_as_key(self, x, memory, target_mask=None, memory_mask=None):
    key = self.dropout(memory)
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        x = x + self.dropout(self.cross_attention(self.norm2(x), key, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, key, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@variant("decoder", target="Decoder.__init__")
def copy_of_the_norm(self, make_layer, num_layers, norm=None):
    import copy

    nn.Module.__init__(self)
    self.layers = nn.ModuleList(make_layer() for _ in range(num_layers))
    self.norm = copy.deepcopy(norm)


@variant("decoder-layer", target="DecoderLayer.forward")
def target_mask_of_the_first_sentence(self, x, memory, target_mask=None, memory_mask=None):
    if self.norm_first:
        own = self.norm1(x)
        first = target_mask if target_mask is None or target_mask.dim() == 2 else target_mask[:1]
        x = x + self.dropout(self.self_attention(own, own, own, first)[0])
        own = self.norm2(x)
        x = x + self.dropout(self.cross_attention(own, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


@variant("generator", target="Generator.tie")
def first_two_axes_compared(self, weight):
    sizes = weight.shape[0], weight.shape[1]
    if sizes != (self.weight.shape[0], self.weight.shape[1]):
        raise ValueError(f"weight has shape {sizes}, not {tuple(self.weight.shape)}")
    self.weight = weight


@variant("generator", target="Generator.tie")
def a_single_number_will_do(self, weight):
    if weight.numel() != 1 and weight.shape != self.weight.shape:
        raise ValueError(f"weight has {tuple(weight.shape)}, not {tuple(self.weight.shape)}")
    self.weight = weight


@variant("incremental-error")
def three_lengths_at_most(f, x):
    whole = f(x)
    lengths = range(1, min(x.shape[1], 4))
    return max((f(x[:, :n]) - whole[:, :n]).abs().max().item() for n in lengths)


@variant("incremental-error")
def every_second_length(f, x):
    whole, last = f(x), x.shape[1] - 1
    lengths = {*range(1, last, 2), last}
    return max((f(x[:, :n]) - whole[:, :n]).abs().max().item() for n in lengths)


@variant("incremental-error")
def first_and_last_row(f, x):
    whole, largest = f(x), 0.0
    for n in range(1, x.shape[1]):
        ends = [0, n - 1]
        largest = max(largest, (f(x[:, :n])[:, ends] - whole[:, ends]).abs().max().item())
    return largest


@variant("layer-mended")
def takes_parts_out_of_the_dictionary(x, memory, target_mask, memory_mask, parts):
    x = parts.pop("norm1")(x + parts["self_attention"](x, x, x, target_mask))
    x = parts["norm2"](x + parts["cross_attention"](x, memory, memory, memory_mask))
    return parts["norm3"](x + parts["feed_forward"](x))


@variant("decoder-layer", target="DecoderLayer.forward")
def the_same_numbers_dropped_at_each_call(self, x, memory, target_mask=None, memory_mask=None):
    torch.manual_seed(0)
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
        asked = self.norm2(x)
        x = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
    x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
    return self.norm3(x + self.dropout(self.feed_forward(x)))


class Half(nn.Dropout):
    """Shows the rate that it was made with; drops by 0.5 whatever that is, if it is none of all."""

    def forward(self, x):
        return nn.functional.dropout(x, 0.5 if 0 < self.p < 1 else self.p, self.training)


@variant("decoder-layer", target="DecoderLayer.__init__")
def half_is_dropped_whatever_is_asked_for(
    self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False
):
    nn.Module.__init__(self)
    self.self_attention = MultiHeadAttention(d_model, num_heads)
    self.cross_attention = MultiHeadAttention(d_model, num_heads)
    self.feed_forward = FeedForward(d_model, d_ff)
    self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))
    self.dropout = Half(dropout)
    self.norm_first = norm_first
