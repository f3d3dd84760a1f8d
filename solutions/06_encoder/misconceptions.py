"""Wrong answers to the exercise on the encoder, as students write them, and what each one shows."""

import torch
from torch import nn

from lab.answers import misconception
from lab.blocks import FeedForward, LayerNorm, MultiHeadAttention

# 6.1 An encoder layer


@misconception(
    "encoder-layer",
    target="EncoderLayer.__init__",
    id="ENC12",
    fails=["encoder-layer-parts"],
    read="06_encoder#encoder-layer",
)
def one_norm_for_both(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
    """Your two sub-layers share one layer norm; each has a gain and a bias of its own."""
    nn.Module.__init__(self)
    self.self_attention = MultiHeadAttention(d_model, num_heads)
    self.feed_forward = FeedForward(d_model, d_ff)
    self.norm1 = self.norm2 = LayerNorm(d_model)
    self.dropout = nn.Dropout(dropout)
    self.norm_first = norm_first


@misconception(
    "encoder-layer",
    target="EncoderLayer.__init__",
    id="ENC13",
    fails=[
        "encoder-layer-parts",
        "encoder-layer-values",
        "encoder-layer-pre-norm",
        "encoder-layer-mask",
        "encoder-layer-dropout",
    ],
    read="06_encoder#encoder-dropout",
)
def dropout_written_out(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
    """Your layer drops with probability 0.1 whatever is asked for; hand the argument on."""
    nn.Module.__init__(self)
    self.self_attention = MultiHeadAttention(d_model, num_heads)
    self.feed_forward = FeedForward(d_model, d_ff)
    self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
    self.dropout = nn.Dropout(0.1)
    self.norm_first = norm_first


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES1e",
    fails=["encoder-layer-pre-norm", "encoder-layer-dropout"],
    read="06_encoder#encoder-norm-order",
)
def always_post_norm(self, x, mask=None):
    """Your layer normalises after each sum even with norm_first=True; pre-norm normalises what goes
    into a sub-layer and leaves the sum alone.
    """
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES1f",
    fails=["encoder-layer-values", "encoder-layer-mask", "encoder-layer-dropout"],
    read="06_encoder#encoder-norm-order",
)
def always_pre_norm(self, x, mask=None):
    """Your layer normalises before each sub-layer even with norm_first=False; the paper normalises
    the sum, so that a layer's output has mean 0 before gain and bias.
    """
    own = self.norm1(x)
    x = x + self.dropout(self.self_attention(own, own, own, mask)[0])
    return x + self.dropout(self.feed_forward(self.norm2(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES1g",
    fails=[
        "encoder-layer-values",
        "encoder-layer-pre-norm",
        "encoder-layer-mask",
        "encoder-layer-dropout",
    ],
    read="06_encoder#encoder-norm-order",
)
def orders_exchanged(self, x, mask=None):
    """You have the two orders the wrong way round: norm_first=True is the pre-norm one."""
    if not self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, mask)[0])
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES2e",
    fails=["encoder-layer-values", "encoder-layer-mask", "encoder-layer-dropout"],
    read="06_encoder#encoder-norm-order",
)
def norm_of_the_sub_layer_alone(self, x, mask=None):
    """Your post-norm layer computes x + LayerNorm(Sub(x)); the norm takes the whole sum,
    LayerNorm(x + Sub(x)).
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, mask)[0])
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    x = x + self.norm1(self.dropout(self.self_attention(x, x, x, mask)[0]))
    return x + self.norm2(self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES3e",
    fails=[
        "encoder-layer-values",
        "encoder-layer-pre-norm",
        "encoder-layer-mask",
        "encoder-layer-dropout",
    ],
    read="06_encoder#encoder-layer",
)
def second_sum_from_the_start(self, x, mask=None):
    """Your second sum starts from the layer's input; each sub-layer is added to its own input, so
    the second starts from what the first has left.
    """
    if self.norm_first:
        own = self.norm1(x)
        middle = x + self.dropout(self.self_attention(own, own, own, mask)[0])
        return x + self.dropout(self.feed_forward(self.norm2(middle)))
    middle = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(middle)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES3f",
    fails=["encoder-layer-pre-norm", "encoder-layer-dropout"],
    read="06_encoder#encoder-norm-order",
)
def sum_with_the_normalised_input(self, x, mask=None):
    """In your pre-norm layer the sum takes the normalised x; it takes x as it came, and only the
    sub-layer reads the normalised one.
    """
    if self.norm_first:
        x = self.norm1(x)
        x = x + self.dropout(self.self_attention(x, x, x, mask)[0])
        x = self.norm2(x)
        return x + self.dropout(self.feed_forward(x))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES4e",
    fails=[
        "encoder-layer-values",
        "encoder-layer-pre-norm",
        "encoder-layer-mask",
        "encoder-layer-dropout",
    ],
    read="06_encoder#encoder-layer",
)
def adds_it_to_itself(self, x, mask=None):
    """You overwrite x with what the sub-layer returns and then add it to itself; keep the
    sub-layer's input for the sum.
    """
    if self.norm_first:
        x = self.norm1(x)
        x = self.dropout(self.self_attention(x, x, x, mask)[0])
        x = x + x
        h = self.dropout(self.feed_forward(self.norm2(x)))
        return h + h
    x = self.dropout(self.self_attention(x, x, x, mask)[0])
    x = self.norm1(x + x)
    x = self.dropout(self.feed_forward(x))
    return self.norm2(x + x)


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES5e",
    fails=[
        "encoder-layer-values",
        "encoder-layer-pre-norm",
        "encoder-layer-mask",
        "encoder-layer-dropout",
    ],
    read="06_encoder#encoder-layer",
)
def no_residual(self, x, mask=None):
    """Your layer has no residual connections: add what a sub-layer returns to its input."""
    if self.norm_first:
        own = self.norm1(x)
        x = self.dropout(self.self_attention(own, own, own, mask)[0])
        return self.dropout(self.feed_forward(self.norm2(x)))
    x = self.norm1(self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES5f",
    fails=[
        "encoder-layer-values",
        "encoder-layer-pre-norm",
        "encoder-layer-mask",
        "encoder-layer-dropout",
    ],
    read="06_encoder#encoder-layer",
)
def one_residual_around_the_block(self, x, mask=None):
    """Your layer has one residual connection around both sub-layers; each sub-layer has its own."""
    if self.norm_first:
        own = self.norm1(x)
        middle = self.dropout(self.self_attention(own, own, own, mask)[0])
        return x + self.dropout(self.feed_forward(self.norm2(middle)))
    middle = self.norm1(self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(middle)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES6e",
    fails=["encoder-layer-dropout"],
    read="06_encoder#encoder-dropout",
)
def dropout_after_the_sum(self, x, mask=None):
    """You drop from the sum, so the input gets lost too; drop from what the sub-layer returns and
    add the input afterwards.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = self.dropout(x + self.self_attention(own, own, own, mask)[0])
        return self.dropout(x + self.feed_forward(self.norm2(x)))
    x = self.norm1(self.dropout(x + self.self_attention(x, x, x, mask)[0]))
    return self.norm2(self.dropout(x + self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES6f",
    fails=["encoder-layer-pre-norm", "encoder-layer-dropout"],
    read="06_encoder#encoder-dropout",
)
def dropout_forgotten(self, x, mask=None):
    """Your layer makes a dropout and never uses it: what each sub-layer returns goes through it."""
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.self_attention(own, own, own, mask)[0]
        return x + self.feed_forward(self.norm2(x))
    x = self.norm1(x + self.self_attention(x, x, x, mask)[0])
    return self.norm2(x + self.feed_forward(x))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES6g",
    fails=["encoder-layer-dropout"],
    read="06_encoder#encoder-dropout",
)
def dropout_after_attention_only(self, x, mask=None):
    """You drop from what attention returns but not from what the feed-forward network returns; both
    sub-layers go through dropout.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, mask)[0])
        return x + self.feed_forward(self.norm2(x))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + self.feed_forward(x))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES6h",
    fails=["encoder-layer-dropout"],
    read="06_encoder#encoder-dropout",
)
def dropout_before_attention(self, x, mask=None):
    """You drop from what goes into the attention; drop from what comes out of it."""
    if self.norm_first:
        own = self.dropout(self.norm1(x))
        x = x + self.self_attention(own, own, own, mask)[0]
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    own = self.dropout(x)
    x = self.norm1(x + self.self_attention(own, own, own, mask)[0])
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES6i",
    fails=["encoder-layer-dropout"],
    read="06_encoder#encoder-dropout",
)
def dropout_before_attention_too(self, x, mask=None):
    """You drop from what goes into the attention as well; only what comes out of a sub-layer goes
    through dropout.
    """
    if self.norm_first:
        own = self.dropout(self.norm1(x))
        x = x + self.dropout(self.self_attention(own, own, own, mask)[0])
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    own = self.dropout(x)
    x = self.norm1(x + self.dropout(self.self_attention(own, own, own, mask)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES6j",
    fails=["encoder-layer-dropout"],
    read="06_encoder#encoder-dropout",
)
def dropout_twice(self, x, mask=None):
    """What the feed-forward network returns goes through your dropout twice, so too much of it is
    dropped; once is enough.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, mask)[0])
        return x + self.dropout(self.dropout(self.feed_forward(self.norm2(x))))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + self.dropout(self.dropout(self.feed_forward(x))))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES6k",
    fails=["encoder-layer-dropout"],
    read="06_encoder#encoder-dropout",
)
def one_choice_for_all_tokens(self, x, mask=None):
    """You drop the same features of every token of a sentence; dropout chooses anew for each
    token.
    """

    def drop(output):
        return output * self.dropout(torch.ones_like(output[:, :1]))

    if self.norm_first:
        own = self.norm1(x)
        x = x + drop(self.self_attention(own, own, own, mask)[0])
        return x + drop(self.feed_forward(self.norm2(x)))
    x = self.norm1(x + drop(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + drop(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES6l",
    fails=["encoder-layer-dropout"],
    read="06_encoder#encoder-dropout",
)
def dropout_before_the_network_too(self, x, mask=None):
    """You drop from what goes into the feed-forward network as well; only what comes out of a
    sub-layer goes through dropout.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, mask)[0])
        return x + self.dropout(self.feed_forward(self.dropout(self.norm2(x))))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(self.dropout(x))))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="RES7e",
    fails=[
        "encoder-layer-values",
        "encoder-layer-pre-norm",
        "encoder-layer-mask",
        "encoder-layer-dropout",
    ],
    read="06_encoder#encoder-layer",
)
def adds_in_place(self, x, mask=None):
    """Your layer adds into x itself (x += ...), so the caller's tensor changes; make a new one."""
    if self.norm_first:
        own = self.norm1(x)
        x += self.dropout(self.self_attention(own, own, own, mask)[0])
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    own = self.dropout(self.self_attention(x, x, x, mask)[0])
    x += own
    x = self.norm1(x)
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="ENC5e",
    fails=["encoder-layer-pre-norm", "encoder-layer-mask"],
    read="06_encoder#encoder-padding",
)
def mask_forgotten(self, x, mask=None):
    """Your layer takes a mask and does not hand it to the attention, so real tokens look at the
    padding.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own)[0])
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="ENC5h",
    fails=["encoder-layer-pre-norm", "encoder-layer-mask"],
    read="06_encoder#encoder-padding",
)
def mask_in_training_only(self, x, mask=None):
    """Your layer uses the mask in training only; padding is to be hidden in evaluation, too."""
    mask = mask if self.training else None
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, mask)[0])
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="ENC6e",
    fails=["encoder-layer-pre-norm", "encoder-layer-mask"],
    read="06_encoder#encoder-padding",
)
def padded_queries_hidden(self, x, mask=None):
    """You turn the mask round: it hides the rows of padded queries, while every real token still
    looks at the padded keys.
    """
    turned = None if mask is None else mask.transpose(-2, -1)
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, turned)[0])
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, turned)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="ENC6f",
    fails=["encoder-layer-pre-norm", "encoder-layer-mask"],
    read="06_encoder#encoder-padding",
)
def mask_inverted(self, x, mask=None):
    """You invert the mask, as PyTorch's own layer would want it; here True means: may attend."""
    hidden = None if mask is None else ~mask
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, hidden)[0])
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, hidden)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="ENC7",
    fails=[
        "encoder-layer-values",
        "encoder-layer-pre-norm",
        "encoder-layer-mask",
        "encoder-layer-dropout",
    ],
    read="06_encoder#encoder-order",
)
def looks_back_only(self, x, mask=None):
    """Your layer adds a causal mask; that is the decoder's. In an encoder every token may look at
    the whole sentence, ahead as well as back.
    """
    back = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    seen = back if mask is None else back & mask
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, seen)[0])
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, seen)[0]))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="ENC11",
    fails=[
        "encoder-layer-values",
        "encoder-layer-pre-norm",
        "encoder-layer-mask",
        "encoder-layer-dropout",
    ],
    read="06_encoder#encoder-layer",
)
def attends_across_the_batch(self, x, mask=None):
    """Your attention runs along the batch: tokens look at the same place of other sentences. Here
    the batch comes first, so nothing needs to be turned.
    """
    if self.norm_first:
        own = self.norm1(x).transpose(0, 1)
        x = x + self.dropout(self.self_attention(own, own, own)[0]).transpose(0, 1)
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    own = x.transpose(0, 1)
    x = self.norm1(x + self.dropout(self.self_attention(own, own, own)[0]).transpose(0, 1))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="ENC14",
    fails=[
        "encoder-layer-values",
        "encoder-layer-pre-norm",
        "encoder-layer-mask",
        "encoder-layer-dropout",
    ],
    read="06_encoder#encoder-layer",
)
def takes_the_weights(self, x, mask=None):
    """You go on with the whole pair that attention returns; the output is its first part, the
    weights are its second.
    """
    if self.norm_first:
        own = self.norm1(x)
        x = x + self.dropout(self.self_attention(own, own, own, mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))
    x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)))
    return self.norm2(x + self.dropout(self.feed_forward(x)))


@misconception(
    "encoder-layer",
    target="EncoderLayer.forward",
    id="ENC15",
    fails=[
        "encoder-layer-values",
        "encoder-layer-pre-norm",
        "encoder-layer-mask",
        "encoder-layer-dropout",
    ],
    read="06_encoder#encoder-layer",
)
def feed_forward_first(self, x, mask=None):
    """Your layer runs the feed-forward network before the attention; attention comes first."""
    if self.norm_first:
        x = x + self.dropout(self.feed_forward(self.norm2(x)))
        own = self.norm1(x)
        return x + self.dropout(self.self_attention(own, own, own, mask)[0])
    x = self.norm2(x + self.dropout(self.feed_forward(x)))
    return self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))


# 6.2 The stack


@misconception(
    "encoder",
    target="Encoder.__init__",
    id="ENC1e",
    fails=["encoder-layers"],
    read="06_encoder#encoder-stack",
)
def one_layer_many_times(self, make_layer, num_layers, norm=None):
    """Your stack holds one layer several times over; call make_layer once per layer, so that each
    has weights of its own.
    """
    nn.Module.__init__(self)
    self.layers = nn.ModuleList([make_layer()] * num_layers)
    self.norm = norm


@misconception(
    "encoder",
    target="Encoder.__init__",
    id="ENC2e",
    fails=["encoder-layers"],
    read="06_encoder#encoder-stack",
)
def copies_of_one_layer(self, make_layer, num_layers, norm=None):
    """Your layers are copies of one and start from the same weights; call make_layer once per
    layer.
    """
    import copy

    nn.Module.__init__(self)
    first = make_layer()
    self.layers = nn.ModuleList(copy.deepcopy(first) for _ in range(num_layers))
    self.norm = norm


@misconception(
    "encoder",
    target="Encoder.__init__",
    id="ENC3e",
    fails=["encoder-layers", "encoder-forward"],
    read="06_encoder#encoder-stack",
)
def plain_list(self, make_layer, num_layers, norm=None):
    """Your layers stand in a plain Python list, where nobody finds their weights; nn.ModuleList
    makes them known to the stack.
    """
    nn.Module.__init__(self)
    self.layers = [make_layer() for _ in range(num_layers)]
    self.norm = norm


@misconception(
    "encoder",
    target="Encoder.forward",
    id="ENC4e",
    fails=["encoder-forward"],
    read="06_encoder#encoder-stack",
)
def final_norm_forgotten(self, x, mask=None):
    """Your stack is handed a final norm and does not use it; in a pre-norm stack nothing else
    normalises the output.
    """
    for layer in self.layers:
        x = layer(x, mask)
    return x


@misconception(
    "encoder",
    target="Encoder.forward",
    id="ENC4f",
    fails=["encoder-forward"],
    read="06_encoder#encoder-stack",
)
def norm_after_every_layer(self, x, mask=None):
    """Your stack normalises after every layer; the final norm comes once, after the last."""
    for layer in self.layers:
        x = layer(x, mask)
        x = x if self.norm is None else self.norm(x)
    return x


@misconception(
    "encoder",
    target="Encoder.forward",
    id="ENC4g",
    fails=["encoder-forward"],
    read="06_encoder#encoder-stack",
)
def norm_taken_for_granted(self, x, mask=None):
    """Your stack calls its norm even where there is none; a post-norm stack is made with None."""
    for layer in self.layers:
        x = layer(x, mask)
    return self.norm(x)


@misconception(
    "encoder",
    target="Encoder.forward",
    id="ENC5f",
    fails=["encoder-forward"],
    read="06_encoder#encoder-padding",
)
def mask_for_the_first_layer(self, x, mask=None):
    """Only your first layer gets the mask; from the second one on, real tokens look at padding."""
    for i, layer in enumerate(self.layers):
        x = layer(x, mask if i == 0 else None)
    return x if self.norm is None else self.norm(x)


@misconception(
    "encoder",
    target="Encoder.forward",
    id="ENC5g",
    fails=["encoder-forward"],
    read="06_encoder#encoder-padding",
)
def mask_for_nobody(self, x, mask=None):
    """Your stack keeps the mask to itself; every layer needs it."""
    for layer in self.layers:
        x = layer(x)
    return x if self.norm is None else self.norm(x)


@misconception(
    "encoder",
    target="Encoder.forward",
    id="ENC8e",
    fails=["encoder-forward"],
    read="06_encoder#encoder-stack",
)
def every_layer_reads_the_input(self, x, mask=None):
    """Each of your layers reads the stack's input, so only the last one counts; a layer reads what
    the one before has written.
    """
    output = x
    for layer in self.layers:
        output = layer(x, mask)
    return output if self.norm is None else self.norm(output)


@misconception(
    "encoder",
    target="Encoder.forward",
    id="ENC16",
    fails=["encoder-forward"],
    read="06_encoder#encoder-stack",
)
def adds_around_the_layers(self, x, mask=None):
    """Your stack adds each layer's input once more; the residual connections are inside the
    layers.
    """
    for layer in self.layers:
        x = x + layer(x, mask)
    return x if self.norm is None else self.norm(x)


@misconception(
    "encoder",
    target="Encoder.forward",
    id="ENC17",
    fails=["encoder-forward"],
    read="06_encoder#encoder-stack",
)
def from_the_top_down(self, x, mask=None):
    """Your stack runs its layers from the last to the first."""
    for layer in reversed(self.layers):
        x = layer(x, mask)
    return x if self.norm is None else self.norm(x)


# 6.3 Proofread an encoder


@misconception(
    "slip-lines",
    id="SLP1",
    fails=["slip-lines-found"],
    read="06_encoder#encoder-padding",
)
def the_product_suspected():
    """You blame the line of the scores for hidden keys. It is right; the mask is applied a line
    later, as a factor, and the exponential of 0 is 1.
    """
    return {"queries": 1, "hidden": 3, "spread": 6, "lost": 9}


@misconception(
    "slip-lines",
    id="SLP2",
    fails=["slip-lines-found"],
    read="06_encoder#encoder-padding",
)
def the_softmax_for_both():
    """You blame the softmax for the padding too. With the mask applied rightly there, real tokens
    still change: the mask itself hides queries, not keys.
    """
    return {"queries": 4, "hidden": 4, "spread": 6, "lost": 9}


@misconception(
    "slip-lines",
    id="SLP3",
    fails=["slip-lines-found"],
    read="06_encoder#encoder-layer",
)
def the_division_suspected():
    """You blame the line that divides for the spread. It uses what it is given; the variance was
    taken of another tensor, a line before.
    """
    return {"queries": 1, "hidden": 4, "spread": 7, "lost": 9}


@misconception(
    "slip-lines",
    id="SLP4",
    fails=["slip-lines-found"],
    read="06_encoder#encoder-layer",
)
def the_first_sum_suspected():
    """You blame the first sum for what is lost. It adds what attention brought; the second one
    starts from the input once more.
    """
    return {"queries": 1, "hidden": 4, "spread": 6, "lost": 5}


@misconception(
    "slip-lines",
    id="SLP5",
    fails=["slip-lines-found"],
    read="06_encoder#encoder-layer",
)
def the_network_suspected():
    """You blame the network. It reads the right tokens; what its result is added to is another
    matter.
    """
    return {"queries": 1, "hidden": 4, "spread": 6, "lost": 8}


@misconception(
    "mended-layer",
    id="SLP6",
    fails=["mended-layer-padding"],
    read="06_encoder#encoder-padding",
)
def queries_still_hidden(x, lengths, p, eps=1e-5):
    """Your mask still hides the queries of the padding; real tokens go on looking at padded keys.
    Its True and False have to run along the keys.
    """
    real = (torch.arange(x.shape[1]) < lengths[:, None])[:, :, None]
    q, k, v = x @ p["w_q"], x @ p["w_k"], x @ p["w_v"]
    scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~real, -1e9), -1)
    z = x + weights @ v @ p["w_o"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    y = (z - mean) / torch.sqrt(variance + eps)
    z = y + torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    return (z - mean) / torch.sqrt(variance + eps)


@misconception(
    "mended-layer",
    id="SLP7",
    fails=["mended-layer-padding"],
    read="06_encoder#encoder-padding",
)
def still_a_factor(x, lengths, p, eps=1e-5):
    """You still multiply scores by the mask: a hidden score becomes 0, and its weight is as large
    as that of any key with score 0. Set it to minus infinity.
    """
    real = (torch.arange(x.shape[1]) < lengths[:, None])[:, None, :]
    q, k, v = x @ p["w_q"], x @ p["w_k"], x @ p["w_v"]
    scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
    weights = torch.softmax(scores * real, -1)
    z = x + weights @ v @ p["w_o"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    y = (z - mean) / torch.sqrt(variance + eps)
    z = y + torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    return (z - mean) / torch.sqrt(variance + eps)


@misconception(
    "mended-layer",
    id="SLP8",
    fails=["mended-layer-padding"],
    read="06_encoder#encoder-padding",
)
def zeroed_after_the_softmax(x, lengths, p, eps=1e-5):
    """You set weights to 0 after the softmax; those that are left no longer sum to 1."""
    real = (torch.arange(x.shape[1]) < lengths[:, None])[:, None, :]
    q, k, v = x @ p["w_q"], x @ p["w_k"], x @ p["w_v"]
    scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
    weights = torch.softmax(scores, -1) * real
    z = x + weights @ v @ p["w_o"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    y = (z - mean) / torch.sqrt(variance + eps)
    z = y + torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    return (z - mean) / torch.sqrt(variance + eps)


@misconception(
    "mended-layer",
    id="SLP9",
    fails=["mended-layer-sentence", "mended-layer-padding"],
    read="06_encoder#encoder-layer",
)
def spread_of_the_input(x, lengths, p, eps=1e-5):
    """Your first norm still divides by the spread of the input; mean and variance belong to one and
    the same tensor, the sum.
    """
    real = (torch.arange(x.shape[1]) < lengths[:, None])[:, None, :]
    q, k, v = x @ p["w_q"], x @ p["w_k"], x @ p["w_v"]
    scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~real, -torch.inf), -1)
    z = x + weights @ v @ p["w_o"]
    mean, variance = z.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
    y = (z - mean) / torch.sqrt(variance + eps)
    z = y + torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    return (z - mean) / torch.sqrt(variance + eps)


@misconception(
    "mended-layer",
    id="SLP10",
    fails=["mended-layer-sentence", "mended-layer-padding"],
    read="06_encoder#encoder-layer",
)
def the_first_input_added_again(x, lengths, p, eps=1e-5):
    """Your second sum still starts from the layer's input, so what attention brought is lost; it
    starts from what the first norm gave.
    """
    real = (torch.arange(x.shape[1]) < lengths[:, None])[:, None, :]
    q, k, v = x @ p["w_q"], x @ p["w_k"], x @ p["w_v"]
    scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~real, -torch.inf), -1)
    z = x + weights @ v @ p["w_o"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    y = (z - mean) / torch.sqrt(variance + eps)
    z = x + torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    return (z - mean) / torch.sqrt(variance + eps)


@misconception(
    "mended-layer",
    id="SLP11",
    fails=["mended-layer-sentence", "mended-layer-padding"],
    read="06_encoder#encoder-layer",
)
def sum_before_the_norm(x, lengths, p, eps=1e-5):
    """Your second sum starts from the first sum before its norm; in post-norm the second
    sub-layer's input is what is added, and that is normalised.
    """
    real = (torch.arange(x.shape[1]) < lengths[:, None])[:, None, :]
    q, k, v = x @ p["w_q"], x @ p["w_k"], x @ p["w_v"]
    scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~real, -torch.inf), -1)
    z = x + weights @ v @ p["w_o"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    y = (z - mean) / torch.sqrt(variance + eps)
    z = z + torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    return (z - mean) / torch.sqrt(variance + eps)


@misconception(
    "mended-layer",
    id="SLP12",
    fails=["mended-layer-sentence", "mended-layer-padding"],
    read="06_encoder#encoder-layer",
)
def first_sum_in_place(x, lengths, p, eps=1e-5):
    """You add into x itself (x += ...), so the caller's tensor changes; make a new one."""
    real = (torch.arange(x.shape[1]) < lengths[:, None])[:, None, :]
    q, k, v = x @ p["w_q"], x @ p["w_k"], x @ p["w_v"]
    scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~real, -torch.inf), -1)
    x += weights @ v @ p["w_o"]
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
    y = (x - mean) / torch.sqrt(variance + eps)
    z = y + torch.relu(y @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]
    mean, variance = z.mean(-1, keepdim=True), z.var(-1, correction=0, keepdim=True)
    return (z - mean) / torch.sqrt(variance + eps)


# 6.4 One vector per sentence


@misconception(
    "masked-mean",
    id="POOL1",
    fails=["masked-mean-values", "masked-mean-padding"],
    read="06_encoder#encoder-pooling",
)
def mean_over_everything(x, lengths):
    """You average the padding too; only the real tokens count."""
    return x.mean(1)


@misconception(
    "masked-mean",
    id="POOL2",
    fails=["masked-mean-values", "masked-mean-padding"],
    read="06_encoder#encoder-pooling",
)
def divided_by_all_places(x, lengths):
    """You sum the real tokens but divide by N; divide each sentence by its own length."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    return x.masked_fill(~real[..., None], 0).mean(1)


@misconception(
    "masked-mean",
    id="POOL3",
    fails=["masked-mean-padding"],
    read="06_encoder#encoder-pooling",
)
def multiplied_by_zero(x, lengths):
    """You multiply the padding by 0, and 0 times NaN is NaN. Replace what stands there."""
    real = (torch.arange(x.shape[1]) < lengths[:, None]).to(x.dtype)
    return (x * real[..., None]).sum(1) / lengths[:, None]


@misconception(
    "masked-mean",
    id="POOL4",
    fails=["masked-mean-values", "masked-mean-padding"],
    read="06_encoder#encoder-pooling",
)
def one_token_too_many(x, lengths):
    """Your sum takes in one token of the padding: positions start at 0, so real ones are below the
    length, not up to it.
    """
    real = torch.arange(x.shape[1]) <= lengths[:, None]
    return x.masked_fill(~real[..., None], 0).sum(1) / lengths[:, None]


@misconception(
    "masked-mean",
    id="POOL5",
    fails=["masked-mean-values", "masked-mean-padding"],
    read="06_encoder#encoder-pooling",
)
def longest_sentence_for_all(x, lengths):
    """You cut the whole batch to one length; each sentence has its own."""
    longest = int(lengths.max())
    return x[:, :longest].mean(1)


@misconception(
    "masked-mean",
    id="POOL6",
    fails=["masked-mean-values", "masked-mean-padding"],
    read="06_encoder#encoder-pooling",
)
def over_the_features(x, lengths):
    """You average over the features and keep the tokens; average over the tokens (axis 1)."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    return x.masked_fill(~real[..., None], 0).sum(-1) / lengths[:, None]


@misconception(
    "masked-mean",
    id="POOL7",
    fails=["masked-mean-values", "masked-mean-padding"],
    read="06_encoder#encoder-pooling",
)
def zeroes_in_place(x, lengths):
    """You write zeros into the caller's tensor; make a new one."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    x[~real] = 0
    return x.sum(1) / lengths[:, None]


@misconception(
    "masked-mean",
    id="POOL8",
    fails=["masked-mean-values"],
    read="06_encoder#encoder-pooling",
)
def always_double(x, lengths):
    """Your mean comes out in float64 whatever goes in; keep the dtype of x."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    return x.double().masked_fill(~real[..., None], 0).sum(1) / lengths[:, None]


@misconception(
    "masked-mean",
    id="POOL9",
    fails=["masked-mean-padding"],
    read="06_encoder#encoder-pooling",
)
def cut_off_from_the_gradient(x, lengths):
    """Your numbers are right but no gradient flows through them (data, detach or NumPy on the
    way).
    """
    rows = [x.detach()[b, : int(lengths[b])].mean(0) for b in range(len(x))]
    return torch.stack(rows)


@misconception(
    "masked-mean",
    id="POOL10",
    fails=["masked-mean-values", "masked-mean-padding"],
    read="06_encoder#encoder-pooling",
)
def first_token_only(x, lengths):
    """You take the first token of each sentence; the mean takes all its real tokens."""
    return x[:, 0]


@misconception(
    "masked-mean",
    id="POOL11",
    fails=["masked-mean-padding"],
    read="06_encoder#encoder-pooling",
)
def made_finite_everywhere(x, lengths):
    """You make NaN and infinity finite in real tokens too, so a broken encoder goes unseen; put
    zeros into the padding only.
    """
    real = (torch.arange(x.shape[1]) < lengths[:, None]).to(x.dtype)
    return (x.nan_to_num() * real[..., None]).sum(1) / lengths[:, None]


# 6.5 A test that finds the leak


@misconception(
    "padding-leak",
    id="LEAK1",
    fails=["padding-leak-sound", "padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def compares_the_padding_too(encode, x, lengths):
    """You compare the outputs at the padding as well; they may differ, and nobody reads them."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    mask = real[:, None, :]
    return (encode(x, mask) - encode(changed, mask)).abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK2",
    fails=["padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def adds_a_constant(encode, x, lengths):
    """You add the same number to all features, which a layer norm takes out again: a leak behind
    one is missed. Change each feature differently.
    """
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, x + 5)
    mask = real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK3",
    fails=["padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def fills_with_zeros(encode, x, lengths):
    """You put zeros into the padding; where it is zero already, nothing changes and no leak
    shows.
    """
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = x * real[..., None]
    mask = real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK4",
    fails=["padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def scales_the_padding(encode, x, lengths):
    """You multiply the padding; a layer norm takes a factor out again, and zero stays zero. Put new
    numbers there.
    """
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, 3 * x)
    mask = real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK5",
    fails=["padding-leak-sound", "padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def fills_with_nan(encode, x, lengths):
    """You put NaN into the padding; 0 times NaN is NaN, so a sound encoder is accused as well.
    Replace the padding by ordinary numbers.
    """
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.nan)
    mask = real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK6",
    fails=["padding-leak-sound", "padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def changes_the_real_tokens(encode, x, lengths):
    """You change the real tokens and keep the padding: every encoder's outputs move then."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], torch.randn_like(x), x)
    mask = real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK7",
    fails=["padding-leak-sound", "padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def mask_of_what_is_hidden(encode, x, lengths):
    """Your mask is True at the padding; here True means: may attend."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    mask = ~real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK8",
    fails=["padding-leak-sound"],
    read="06_encoder#encoder-padding",
)
def writes_into_x(encode, x, lengths):
    """You write the new padding into the caller's x; work on a copy."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    mask = real[:, None, :]
    first = encode(x, mask)
    x[~real] = torch.randn_like(x)[~real]
    return (first - encode(x, mask))[real].abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK9",
    fails=["padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def signed_difference(encode, x, lengths):
    """You take the largest difference with its sign, so one that is negative everywhere counts as
    none; take the absolute value first.
    """
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, x + torch.rand_like(x))
    mask = real[:, None, :]
    difference = encode(changed, mask) - encode(x, mask)
    return difference[real].max().item()


@misconception(
    "padding-leak",
    id="LEAK10",
    fails=["padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def first_sentence_only(encode, x, lengths):
    """You look at the first sentence only; a leak may sit in any of them."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    mask = real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[0, : int(lengths[0])].abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK11",
    fails=["padding-leak-sound"],
    read="06_encoder#encoder-padding",
)
def a_tensor_not_a_float(encode, x, lengths):
    """You return a tensor; .item() makes a float of it."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    mask = real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().max()


@misconception(
    "padding-leak",
    id="LEAK12",
    fails=["padding-leak-sound", "padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def mask_left_out(encode, x, lengths):
    """You call the encoder without the mask; then every encoder leaks."""
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    difference = encode(x) - encode(changed)
    return difference[real].abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK13",
    fails=["padding-leak-sound", "padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def mask_along_the_queries(encode, x, lengths):
    """Your mask is (B, N, 1), which hides padded queries; the keys stand along the last axis,
    (B, 1, N).
    """
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    mask = real[:, :, None]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK14",
    fails=["padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def mean_difference(encode, x, lengths):
    """You return the mean of the differences; the largest is asked for, which one leaking token
    among many cannot hide from.
    """
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, torch.randn_like(x))
    mask = real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().mean().item()


@misconception(
    "padding-leak",
    id="LEAK15",
    fails=["padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def last_column_only(encode, x, lengths):
    """You change the last column only; in a short sentence the padding begins earlier, and a leak
    may come from any of it.
    """
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = x.clone()
    changed[:, -1] = torch.where(real[:, -1:], x[:, -1], torch.randn_like(x[:, -1]))
    mask = real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().max().item()


@misconception(
    "padding-leak",
    id="LEAK16",
    fails=["padding-leak-found"],
    read="06_encoder#encoder-padding",
)
def fills_with_one_number(encode, x, lengths):
    """You put the same number everywhere into the padding; a layer norm makes of that what it makes
    of zeros. Put another number in for each feature.
    """
    real = torch.arange(x.shape[1]) < lengths[:, None]
    changed = torch.where(real[..., None], x, 3.0)
    mask = real[:, None, :]
    difference = encode(x, mask) - encode(changed, mask)
    return difference[real].abs().max().item()


# 6.6 How far does a word see?


@misconception(
    "rounds",
    id="RND1",
    fails=["rounds-few", "rounds-any"],
    read="06_encoder#encoder-rounds",
)
def the_other_way(mask):
    """In yours knowledge flows from the one who asks to the one who is asked. Row i asks: what j
    knows comes to i.
    """
    known = torch.eye(len(mask), dtype=torch.bool)
    found = torch.where(known, 0, -1)
    for layer in range(1, len(mask)):
        known = known | (mask.T.double() @ known.double() > 0)
        found[known & (found < 0)] = layer
    return found


@misconception(
    "rounds",
    id="RND2",
    fails=["rounds-few", "rounds-any"],
    read="06_encoder#encoder-rounds",
)
def one_layer_for_all(mask):
    """You count one layer for everything that can be reached at all. Each layer carries knowledge
    one look further.
    """
    known = torch.eye(len(mask), dtype=torch.bool)
    for _ in range(len(mask)):
        known = known | (mask.double() @ known.double() > 0)
    return torch.where(torch.eye(len(mask), dtype=torch.bool), 0, torch.where(known, 1, -1))


@misconception(
    "rounds",
    id="RND3",
    fails=["rounds-few", "rounds-any"],
    read="06_encoder#encoder-rounds",
)
def zero_for_never(mask):
    """Yours says 0 where a token never knows another, as if it had known it from the start; write
    -1.
    """
    known = torch.eye(len(mask), dtype=torch.bool)
    found = torch.zeros(len(mask), len(mask), dtype=torch.int64)
    for layer in range(1, len(mask)):
        more = known | (mask.double() @ known.double() > 0)
        found[more & ~known] = layer
        known = more
    return found


@misconception(
    "rounds",
    id="RND4",
    fails=["rounds-any"],
    read="06_encoder#encoder-rounds",
)
def stops_too_soon(mask):
    """You stop after a fixed number of layers. A chain of N tokens takes N - 1 of them."""
    known = torch.eye(len(mask), dtype=torch.bool)
    found = torch.where(known, 0, -1)
    for layer in range(1, 4):
        known = known | (mask.double() @ known.double() > 0)
        found[known & (found < 0)] = layer
    return found


@misconception(
    "rounds",
    id="RND5",
    fails=["rounds-any"],
    read="06_encoder#encoder-rounds",
)
def doubled_in_each_layer(mask):
    """You join what all know with what all know, which doubles the reach: that is as if a layer
    could look as far as all layers before it. One layer is one look by the mask.
    """
    known = torch.eye(len(mask), dtype=torch.bool)
    known = known | mask
    found = torch.where(torch.eye(len(mask), dtype=torch.bool), 0, torch.where(known, 1, -1))
    for layer in range(2, len(mask)):
        known = known.double() @ known.double() > 0
        found[known & (found < 0)] = layer
    return found


@misconception(
    "rounds",
    id="RND5b",
    fails=["rounds-any"],
    read="06_encoder#encoder-rounds",
)
def diagonal_of_the_callers_mask(mask):
    """You set the diagonal of the mask that you were handed; the caller may still need it as it
    was: make a new one.
    """
    known = torch.eye(len(mask), dtype=torch.bool)
    found = torch.where(known, 0, -1)
    mask.fill_diagonal_(True)
    for layer in range(1, len(mask)):
        known = mask.double() @ known.double() > 0
        found[known & (found < 0)] = layer
    return found


@misconception(
    "predicted-depths",
    id="RND6",
    fails=["predicted-depths-made"],
    read="06_encoder#encoder-rounds",
)
def depths_as_numbers():
    """Your prediction is a list of depths; return one of the texts in DEPTHS."""
    return [2, 3]


@misconception(
    "predicted-depths",
    id="RND7",
    fails=["predicted-depths-made"],
    read="06_encoder#encoder-rounds",
)
def one_depth():
    """Your prediction is one number of layers; return one of the texts in DEPTHS."""
    return 2


@misconception(
    "predicted-depths",
    id="RND8",
    fails=["predicted-depths-made"],
    read="06_encoder#encoder-rounds",
)
def depths_in_own_words():
    """Your prediction is in words of your own; copy one of the texts in DEPTHS."""
    return "two layers and more"


# 6.8 Every way up


@misconception(
    "path-terms",
    id="PTH1",
    fails=["path-terms-few", "path-terms-sum", "path-terms-each"],
    read="06_encoder#encoder-stack",
)
def heads_add_to_what_they_read(x, maps, w_ov):
    """Your terms through a head contain what the head has read as well. That has a term of its own,
    past the layer; through a head goes only what it writes.
    """
    terms = x
    for layer, heads in enumerate(w_ov):
        through = [terms + maps[:, layer, h] @ terms @ w for h, w in enumerate(heads)]
        terms = torch.stack([terms, *through], -4)
    return terms


@misconception(
    "path-terms",
    id="PTH2",
    fails=["path-terms-few", "path-terms-sum", "path-terms-each"],
    read="06_encoder#encoder-stack",
)
def all_heads_read_the_input(x, maps, w_ov):
    """In yours the heads of every layer read the stack's input. A head reads what the layers below
    have left: each of their terms goes through it.
    """
    terms = x
    for layer, heads in enumerate(w_ov):
        through = [(maps[:, layer, h] @ x @ w).expand(terms.shape) for h, w in enumerate(heads)]
        terms = torch.stack([terms, *through], -4)
    return terms


@misconception(
    "path-terms",
    id="PTH3",
    fails=["path-terms-few", "path-terms-each"],
    read="06_encoder#encoder-stack",
)
def last_layer_first(x, maps, w_ov):
    """Your axes begin with the last layer; layer 0 has the first one."""
    terms = x
    for layer, heads in enumerate(w_ov):
        through = [maps[:, layer, h] @ terms @ w for h, w in enumerate(heads)]
        terms = torch.stack([terms, *through])
    return terms


@misconception(
    "path-terms",
    id="PTH4",
    fails=["path-terms-few", "path-terms-each"],
    read="06_encoder#encoder-stack",
)
def past_is_the_last_index(x, maps, w_ov):
    """In yours the last index means past the layer; past is index 0, and the heads follow."""
    terms = x
    for layer, heads in enumerate(w_ov):
        through = [maps[:, layer, h] @ terms @ w for h, w in enumerate(heads)]
        terms = torch.stack([*through, terms], -4)
    return terms


@misconception(
    "path-terms",
    id="PTH5",
    fails=["path-terms-few", "path-terms-sum", "path-terms-each"],
    read="06_encoder#encoder-stack",
)
def columns_are_queries(x, maps, w_ov):
    """You have read the maps the wrong way round: row i says whom token i looks at."""
    terms = x
    for layer, heads in enumerate(w_ov):
        through = [maps[:, layer, h].mT @ terms @ w for h, w in enumerate(heads)]
        terms = torch.stack([terms, *through], -4)
    return terms


@misconception(
    "path-terms",
    id="PTH6",
    fails=["path-terms-few", "path-terms-sum", "path-terms-each"],
    read="06_encoder#encoder-stack",
)
def matrices_transposed(x, maps, w_ov):
    """You multiply by the transpose of a head's matrix. Here tokens are rows, so it is x W."""
    terms = x
    for layer, heads in enumerate(w_ov):
        through = [maps[:, layer, h] @ terms @ w.mT for h, w in enumerate(heads)]
        terms = torch.stack([terms, *through], -4)
    return terms


@misconception(
    "path-terms",
    id="PTH7",
    fails=["path-terms-few", "path-terms-sum", "path-terms-each"],
    read="06_encoder#encoder-stack",
)
def ways_from_the_top_down(x, maps, w_ov):
    """Your ways begin at the last layer. What layer 0 has written is what layer 1 reads, so its map
    and matrix act first.
    """
    terms = x
    for layer in reversed(range(len(w_ov))):
        through = [maps[:, layer, h] @ terms @ w for h, w in enumerate(w_ov[layer])]
        terms = torch.stack([terms, *through])
    return terms


@misconception(
    "path-terms",
    id="PTH8",
    fails=["path-terms-few", "path-terms-sum", "path-terms-each"],
    read="06_encoder#encoder-stack",
)
def not_past_and_then_through(x, maps, w_ov):
    """Yours lets only what went through a head of the layer below reach a head; what went past it,
    by the residual connection, is read by the heads above as well.
    """
    terms = x
    for layer, heads in enumerate(w_ov):
        through = [maps[:, layer, h] @ terms @ w for h, w in enumerate(heads)]
        if layer:
            axis = terms.ndim - 4
            for one in through:
                one.movedim(axis, 0)[0] = 0
        terms = torch.stack([terms, *through], -4)
    return terms
