"""Wrong answers to the exercise on the encoder that nobody gets a name for; all must lose."""

import torch
from torch import nn

from lab.answers import variant
from lab.blocks import FeedForward, LayerNorm, MultiHeadAttention


@variant("encoder", target="Encoder.forward")
def norm_in_training_only(self, x, mask=None):
    for layer in self.layers:
        x = layer(x, mask)
    return self.norm(x) if self.norm is not None and self.training else x


@variant("encoder", target="Encoder.forward")
def mask_for_the_first_two_layers(self, x, mask=None):
    for i, layer in enumerate(self.layers):
        x = layer(x, mask if i < 2 else None)
    return x if self.norm is None else self.norm(x)


@variant("padding-leak")
def first_feature_only(encode, x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    difference = encode(x, real[:, None, :]) - encode(changed, real[:, None, :])
    return difference[real][:, 0].abs().max().item()


@variant("padding-leak")
def largest_with_its_sign(encode, x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    difference = encode(x, real[:, None, :]) - encode(changed, real[:, None, :])
    return difference[real].max().item()


@variant("padding-leak")
def first_column_of_the_padding_only(encode, x, lengths):
    positions = torch.arange(x.shape[1])
    real = positions < lengths[:, None]
    first = positions == lengths[:, None]
    changed = torch.where(first[..., None], torch.randn_like(x), x)
    difference = encode(x, real[:, None, :]) - encode(changed, real[:, None, :])
    return difference[real].abs().max().item()


@variant("encoder-layer", target="EncoderLayer.forward")
def query_dropped_too(self, x, mask=None):
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(self.dropout(own), own, own, mask)[0])
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    x = self.norm1(x + self.dropout(self.self_attention(self.dropout(x), x, x, mask)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@variant("encoder-layer", target="EncoderLayer.forward")
def network_input_dropped_in_pre_norm_only(self, x, mask=None):
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, mask)[0])
        return x + self.dropout(self.feed_forward(self.dropout(self.norm2(x))))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@variant("masked-mean")
def all_axes_of_one_removed(x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    kept = x.masked_fill(~real[..., None], 0)
    return torch.bmm(real[:, None].to(x.dtype), kept).squeeze() / lengths[:, None]


@variant("masked-mean")
def minus_infinity_made_finite(x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    kept = x.masked_fill(~real[..., None], 0).clamp(min=torch.finfo(x.dtype).min)
    return kept.sum(1) / lengths[:, None]


@variant("mended-layer")
def hidden_scores_of_minus_ten_thousand(x, lengths, p, eps=1e-05):
    real = (torch.arange(x.shape[1]) < lengths[:, None])[:, None, :]
    q, k, v = (x @ p["w_q"], x @ p["w_k"], x @ p["w_v"])
    w = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(~real, -10000.0).softmax(-1)
    z = x + w @ v @ p["w_o"]
    y = (z - z.mean(-1, keepdim=True)) / torch.sqrt(z.var(-1, correction=0, keepdim=True) + eps)
    z = y + torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    return (z - z.mean(-1, keepdim=True)) / torch.sqrt(z.var(-1, correction=0, keepdim=True) + eps)


@variant("encoder-layer", target="EncoderLayer.forward")
def the_same_numbers_dropped_at_each_call(self, x, mask=None):
    torch.manual_seed(0)
    if self.norm_first:
        normed = self.norm1(x)
        x = x + self.dropout(self.self_attention(normed, normed, normed, mask)[0])
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


class Half(nn.Dropout):
    """Shows the rate that it was made with; drops by 0.5 whatever that is, if it is none of all."""

    def forward(self, x):
        return nn.functional.dropout(x, 0.5 if 0 < self.p < 1 else self.p, self.training)


@variant("encoder-layer", target="EncoderLayer.__init__")
def half_is_dropped_whatever_is_asked_for(
    self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False
):
    nn.Module.__init__(self)
    self.self_attention = MultiHeadAttention(d_model, num_heads)
    self.feed_forward = FeedForward(d_model, d_ff)
    self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
    self.dropout = Half(dropout)
    self.norm_first = norm_first


@variant("padding-leak")
def noise_in_double_precision_whatever_the_batch(encode, x, lengths):
    real = torch.arange(x.shape[1]) < lengths[:, None]
    noise = torch.randn(x.shape, dtype=torch.float64)
    changed = torch.where(real[..., None], x, noise)
    difference = encode(x, real[:, None, :]) - encode(changed, real[:, None, :])
    return difference[real].abs().max().item()
