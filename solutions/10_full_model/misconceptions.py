"""Wrong answers to the exercise on the full model, as students write them, and what each shows."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import misconception
from lab.blocks import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    Generator,
    LayerNorm,
    PositionalEncoding,
    TokenEmbedding,
)

# 10.1 The Transformer


@misconception(
    "transformer",
    target="Transformer.__init__",
    id="TOK5",
    fails=["transformer-parts"],
    read="10_full_model#one-matrix",
)
def tied_by_copy(
    self,
    source_vocab,
    target_vocab,
    encoding,
    d_model=512,
    num_layers=6,
    num_heads=8,
    d_ff=2048,
    dropout=0.1,
    pad_id=0,
    norm_first=False,
    tied=True,
):
    """Your matrices have equal numbers to begin with but are different Parameters: the first step
    of training takes them apart. Share the Parameter itself.
    """
    nn.Module.__init__(self)
    self.pad_id = pad_id
    self.source_embedding = TokenEmbedding(source_vocab, d_model)
    self.target_embedding = TokenEmbedding(target_vocab, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)

    def norm():
        return LayerNorm(d_model) if norm_first else None

    self.encoder = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers, norm()
    )
    self.decoder = Decoder(
        lambda: DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers, norm()
    )
    self.generator = Generator(d_model, target_vocab)
    if tied:
        self.generator.weight.data.copy_(self.target_embedding.weight.data)
        if source_vocab == target_vocab:
            self.source_embedding.weight.data.copy_(self.target_embedding.weight.data)


@misconception(
    "transformer",
    target="Transformer.__init__",
    id="TOK5b",
    fails=["transformer-parts"],
    read="10_full_model#one-matrix",
)
def source_never_tied(
    self,
    source_vocab,
    target_vocab,
    encoding,
    d_model=512,
    num_layers=6,
    num_heads=8,
    d_ff=2048,
    dropout=0.1,
    pad_id=0,
    norm_first=False,
    tied=True,
):
    """You tie the output to the target embedding only; where the vocabularies are one, the source
    embedding shares the matrix as well.
    """
    nn.Module.__init__(self)
    self.pad_id = pad_id
    self.source_embedding = TokenEmbedding(source_vocab, d_model)
    self.target_embedding = TokenEmbedding(target_vocab, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)

    def norm():
        return LayerNorm(d_model) if norm_first else None

    self.encoder = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers, norm()
    )
    self.decoder = Decoder(
        lambda: DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers, norm()
    )
    self.generator = Generator(d_model, target_vocab)
    if tied:
        self.generator.tie(self.target_embedding.weight)


@misconception(
    "transformer",
    target="Transformer.__init__",
    id="FUL1",
    fails=["transformer-parts", "transformer-values"],
    read="10_full_model#one-matrix",
)
def always_tied(
    self,
    source_vocab,
    target_vocab,
    encoding,
    d_model=512,
    num_layers=6,
    num_heads=8,
    d_ff=2048,
    dropout=0.1,
    pad_id=0,
    norm_first=False,
    tied=True,
):
    """You share the matrices even with tied=False; then all three should be apart."""
    nn.Module.__init__(self)
    self.pad_id = pad_id
    self.source_embedding = TokenEmbedding(source_vocab, d_model)
    self.target_embedding = TokenEmbedding(target_vocab, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)

    def norm():
        return LayerNorm(d_model) if norm_first else None

    self.encoder = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers, norm()
    )
    self.decoder = Decoder(
        lambda: DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers, norm()
    )
    self.generator = Generator(d_model, target_vocab)
    if source_vocab == target_vocab:
        self.source_embedding.weight = self.target_embedding.weight
    self.generator.tie(self.target_embedding.weight)


@misconception(
    "transformer",
    target="Transformer.__init__",
    id="FUL2",
    fails=["transformer-parts", "transformer-values"],
    read="10_full_model#the-parts",
)
def one_layer_many_times(
    self,
    source_vocab,
    target_vocab,
    encoding,
    d_model=512,
    num_layers=6,
    num_heads=8,
    d_ff=2048,
    dropout=0.1,
    pad_id=0,
    norm_first=False,
    tied=True,
):
    """All layers of a stack are one and the same in your model: make_layer returns a layer that was
    made once. Each call should make a new one.
    """
    nn.Module.__init__(self)
    self.pad_id = pad_id
    self.source_embedding = TokenEmbedding(source_vocab, d_model)
    self.target_embedding = TokenEmbedding(target_vocab, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)

    def norm():
        return LayerNorm(d_model) if norm_first else None

    encoder_layer = EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first)
    decoder_layer = DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first)
    self.encoder = Encoder(lambda: encoder_layer, num_layers, norm())
    self.decoder = Decoder(lambda: decoder_layer, num_layers, norm())
    self.generator = Generator(d_model, target_vocab)
    if tied:
        if source_vocab == target_vocab:
            self.source_embedding.weight = self.target_embedding.weight
        self.generator.tie(self.target_embedding.weight)


@misconception(
    "transformer",
    target="Transformer.__init__",
    id="FUL3",
    fails=["transformer-parts", "transformer-values"],
    read="10_full_model#the-parts",
)
def no_final_norms(
    self,
    source_vocab,
    target_vocab,
    encoding,
    d_model=512,
    num_layers=6,
    num_heads=8,
    d_ff=2048,
    dropout=0.1,
    pad_id=0,
    norm_first=False,
    tied=True,
):
    """Your pre-norm stacks end without a norm: what leaves the last layer is a sum that nothing has
    brought to size. With norm_first each stack needs a final LayerNorm.
    """
    nn.Module.__init__(self)
    self.pad_id = pad_id
    self.source_embedding = TokenEmbedding(source_vocab, d_model)
    self.target_embedding = TokenEmbedding(target_vocab, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)
    self.encoder = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers
    )
    self.decoder = Decoder(
        lambda: DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers
    )
    self.generator = Generator(d_model, target_vocab)
    if tied:
        if source_vocab == target_vocab:
            self.source_embedding.weight = self.target_embedding.weight
        self.generator.tie(self.target_embedding.weight)


@misconception(
    "transformer",
    target="Transformer.__init__",
    id="FUL4",
    fails=["transformer-parts"],
    read="10_full_model#the-parts",
)
def one_final_norm_for_both(
    self,
    source_vocab,
    target_vocab,
    encoding,
    d_model=512,
    num_layers=6,
    num_heads=8,
    d_ff=2048,
    dropout=0.1,
    pad_id=0,
    norm_first=False,
    tied=True,
):
    """Encoder and decoder share one final norm in your model; each needs a gain and a bias of its
    own.
    """
    nn.Module.__init__(self)
    self.pad_id = pad_id
    self.source_embedding = TokenEmbedding(source_vocab, d_model)
    self.target_embedding = TokenEmbedding(target_vocab, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)
    norm = LayerNorm(d_model) if norm_first else None
    self.encoder = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers, norm
    )
    self.decoder = Decoder(
        lambda: DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first), num_layers, norm
    )
    self.generator = Generator(d_model, target_vocab)
    if tied:
        if source_vocab == target_vocab:
            self.source_embedding.weight = self.target_embedding.weight
        self.generator.tie(self.target_embedding.weight)


@misconception(
    "transformer",
    target="Transformer.__init__",
    id="FUL5",
    fails=["transformer-parts"],
    read="10_full_model#the-parts",
)
def dropout_stays_at_its_default(
    self,
    source_vocab,
    target_vocab,
    encoding,
    d_model=512,
    num_layers=6,
    num_heads=8,
    d_ff=2048,
    dropout=0.1,
    pad_id=0,
    norm_first=False,
    tied=True,
):
    """The dropout asked for does not reach your layers, which keep their default; hand it on to the
    layers and to the positional encoding.
    """
    nn.Module.__init__(self)
    self.pad_id = pad_id
    self.source_embedding = TokenEmbedding(source_vocab, d_model)
    self.target_embedding = TokenEmbedding(target_vocab, d_model)
    self.positional_encoding = PositionalEncoding(encoding)

    def norm():
        return LayerNorm(d_model) if norm_first else None

    self.encoder = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, norm_first=norm_first), num_layers, norm()
    )
    self.decoder = Decoder(
        lambda: DecoderLayer(d_model, num_heads, d_ff, norm_first=norm_first), num_layers, norm()
    )
    self.generator = Generator(d_model, target_vocab)
    if tied:
        if source_vocab == target_vocab:
            self.source_embedding.weight = self.target_embedding.weight
        self.generator.tie(self.target_embedding.weight)


@misconception(
    "transformer",
    target="Transformer.decode",
    id="TOK5c",
    fails=["transformer-values"],
    read="10_full_model#one-matrix",
)
def logits_times_the_root(self, target, memory, memory_mask, offset=0):
    """Your logits are too large by sqrt(d_model): that factor belongs to the embedding, not to the
    output that shares its matrix.
    """
    n = target.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril() & (target != self.pad_id).unsqueeze(1)
    x = self.positional_encoding(self.target_embedding(target), offset)
    logits = self.generator(self.decoder(x, memory, mask, memory_mask))
    return logits * math.sqrt(memory.shape[-1])


@misconception(
    "transformer",
    target="Transformer.encode",
    id="TOK1b",
    fails=["transformer-values"],
    read="10_full_model#the-parts",
)
def scaled_twice(self, source):
    """You multiply the source's vectors by sqrt(d_model) once more; TokenEmbedding has brought them
    to size already.
    """
    mask = (source != self.pad_id).unsqueeze(1)
    x = self.source_embedding(source) * math.sqrt(self.source_embedding.weight.shape[1])
    return self.encoder(self.positional_encoding(x), mask), mask


@misconception(
    "transformer",
    target="Transformer.encode",
    id="TOK4",
    fails=["transformer-values"],
    read="01_embedding#embedding-scale",
)
def scaled_after_the_positions(self, source):
    """You multiply by sqrt(d_model) after the positions are added, so they grow as well; only the
    embedding's vectors are scaled.
    """
    mask = (source != self.pad_id).unsqueeze(1)
    x = self.positional_encoding(self.source_embedding.weight[source])
    return self.encoder(x * math.sqrt(self.source_embedding.weight.shape[1]), mask), mask


@misconception(
    "transformer",
    target="Transformer.encode",
    id="ENC9",
    fails=["transformer-values"],
    read="10_full_model#the-parts",
)
def positions_before_every_layer(self, source):
    """You add the positions anew before every layer; they are added once, to the vectors of the
    embedding.
    """
    mask = (source != self.pad_id).unsqueeze(1)
    x = self.source_embedding(source)
    for layer in self.encoder.layers:
        x = layer(self.positional_encoding(x), mask)
    return (x if self.encoder.norm is None else self.encoder.norm(x)), mask


@misconception(
    "transformer",
    target="Transformer.encode",
    id="FUL6",
    fails=["transformer-parts", "transformer-values"],
    read="10_full_model#the-parts",
)
def source_without_positions(self, source):
    """Your source gets no positions: its words could stand in any order."""
    mask = (source != self.pad_id).unsqueeze(1)
    return self.encoder(self.source_embedding(source), mask), mask


@misconception(
    "transformer",
    target="Transformer.encode",
    id="FUL7",
    fails=["transformer-masks"],
    read="10_full_model#the-parts",
)
def padding_known_and_not_used(self, source):
    """You return the memory mask but do not give it to the encoder: source tokens attend to
    padding.
    """
    mask = (source != self.pad_id).unsqueeze(1)
    return self.encoder(self.positional_encoding(self.source_embedding(source))), mask


@misconception(
    "transformer",
    target="Transformer.encode",
    id="TOK10",
    fails=["transformer-values", "transformer-masks"],
    read="10_full_model#the-parts",
)
def padding_is_zero(self, source):
    """You take 0 for the padding id; the caller says what it is (pad_id)."""
    mask = (source != 0).unsqueeze(1)
    return self.encoder(self.positional_encoding(self.source_embedding(source)), mask), mask


@misconception(
    "transformer",
    target="Transformer.decode",
    id="DEC1b",
    fails=["transformer-values", "transformer-masks"],
    read="10_full_model#the-parts",
)
def no_triangle(self, target, memory, memory_mask, offset=0):
    """Your decoder sees the future: only padding is hidden in the target, and each token can read
    off the one it is to predict.
    """
    mask = (target != self.pad_id).unsqueeze(1)
    x = self.positional_encoding(self.target_embedding(target), offset)
    return self.generator(self.decoder(x, memory, mask, memory_mask))


@misconception(
    "transformer",
    target="Transformer.decode",
    id="DEC5c",
    fails=["transformer-masks"],
    read="10_full_model#the-parts",
)
def triangle_only(self, target, memory, memory_mask, offset=0):
    """Your target mask is the triangle alone; padding in the target should be hidden as well."""
    n = target.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    x = self.positional_encoding(self.target_embedding(target), offset)
    return self.generator(self.decoder(x, memory, mask, memory_mask))


@misconception(
    "transformer",
    target="Transformer.decode",
    id="DEC9b",
    fails=["transformer-masks"],
    read="10_full_model#the-parts",
)
def memory_mask_dropped(self, target, memory, memory_mask, offset=0):
    """Your decoder gets no memory mask, so the target attends to the source's padding."""
    n = target.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril() & (target != self.pad_id).unsqueeze(1)
    x = self.positional_encoding(self.target_embedding(target), offset)
    return self.generator(self.decoder(x, memory, mask))


@misconception(
    "transformer",
    target="Transformer.decode",
    id="INF20",
    fails=["transformer-offset"],
    read="10_full_model#the-parts",
)
def offset_forgotten(self, target, memory, memory_mask, offset=0):
    """You ignore offset: a token that comes alone would always stand at position 0."""
    n = target.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril() & (target != self.pad_id).unsqueeze(1)
    x = self.positional_encoding(self.target_embedding(target))
    return self.generator(self.decoder(x, memory, mask, memory_mask))


@misconception(
    "transformer",
    target="Transformer.decode",
    id="FUL8",
    fails=["transformer-values"],
    read="10_full_model#the-parts",
)
def probabilities(self, target, memory, memory_mask, offset=0):
    """You return probabilities; logits go out as they are, and the loss takes the softmax."""
    n = target.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril() & (target != self.pad_id).unsqueeze(1)
    x = self.positional_encoding(self.target_embedding(target), offset)
    return self.generator(self.decoder(x, memory, mask, memory_mask)).softmax(-1)


@misconception(
    "transformer",
    target="Transformer.forward",
    id="TF6b",
    fails=["transformer-values", "transformer-masks"],
    read="10_full_model#the-parts",
)
def shifted_once_more(self, source, target):
    """You shift the target inside the model; forward gets the decoder's input as it is."""
    memory, memory_mask = self.encode(source)
    return self.decode(target[:, :-1], memory, memory_mask)


# 10.2 First numbers


@misconception(
    "initialise",
    id="TRN8",
    fails=["initialise-values", "initialise-tied"],
    read="10_full_model#first-numbers",
)
def xavier_for_all_matrices(model):
    """You draw the embedding by Xavier's rule as well, whose size depends on the vocabulary; an
    embedding should be normal with standard deviation 1 / sqrt(d_model).
    """
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)


@misconception(
    "initialise", id="TOK6", fails=["initialise-tied"], read="10_full_model#first-numbers"
)
def embedding_first(model):
    """A shared matrix ends up uniform: the generator's turn comes after the embedding's and draws
    it anew.
    """
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            continue
        for parameter in module.parameters(recurse=False):
            if parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)


@misconception(
    "initialise",
    id="TOK6b",
    fails=["initialise-values", "initialise-tied"],
    read="10_full_model#first-numbers",
)
def new_parameter(model):
    """You give the embedding a new Parameter, which breaks the tie to the generator (and an
    optimiser that was made before still holds the old one); draw into the one that is there.
    """
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            size = tuple(module.weight.shape)
            module.weight = nn.Parameter(torch.randn(size) / math.sqrt(size[1]))


@misconception(
    "initialise", id="TRN8b", fails=["initialise-values"], read="10_full_model#first-numbers"
)
def biases_and_gains_zeroed(model):
    """You set what has one axis to 0; with a gain of 0 a norm returns nothing but its bias."""
    for parameter in model.parameters():
        if parameter.dim() == 1:
            nn.init.zeros_(parameter)
        else:
            nn.init.xavier_uniform_(parameter)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)


@misconception(
    "initialise",
    id="TRN8c",
    fails=["initialise-values", "initialise-tied"],
    read="10_full_model#first-numbers",
)
def xavier_normal(model):
    """You draw the matrices from a normal distribution; Xavier uniform is asked for."""
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.xavier_normal_(parameter)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)


@misconception(
    "initialise",
    id="TRN8d",
    fails=["initialise-values", "initialise-tied"],
    read="10_full_model#first-numbers",
)
def embedding_of_variance_one(model):
    """Your embeddings have a standard deviation of 1; shared with the output, that makes logits too
    large by sqrt(d_model).
    """
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight)


@misconception(
    "initialise", id="TRN8e", fails=["initialise-values"], read="10_full_model#first-numbers"
)
def every_axis_but_one(model):
    """You draw whatever has more than one axis; a parameter with three, a convolution's kernel say,
    is no matrix and stays as it is.
    """
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)


# 10.3 How many numbers?


@misconception(
    "count-parameters",
    id="FUL9",
    fails=["count-parameters-base", "count-parameters-options"],
    read="10_full_model#counting",
)
def attention_with_biases(
    source_vocab, target_vocab, d_model, num_layers, d_ff, norm_first=False, tied=True
):
    """You counted as if attention had biases; in the paper and in this course it has none."""
    attention = 4 * (d_model**2 + d_model)
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    layers = num_layers * (3 * attention + 2 * feed_forward + 5 * norm) + 2 * norm * norm_first
    if not tied:
        return layers + (source_vocab + 2 * target_vocab) * d_model
    if source_vocab == target_vocab:
        return layers + target_vocab * d_model
    return layers + (source_vocab + target_vocab) * d_model


@misconception(
    "count-parameters",
    id="FUL10",
    fails=["count-parameters-base", "count-parameters-options"],
    read="10_full_model#counting",
)
def one_attention_in_the_decoder(
    source_vocab, target_vocab, d_model, num_layers, d_ff, norm_first=False, tied=True
):
    """Your decoder layer has one attention and two norms; it has two and three."""
    attention = 4 * d_model**2
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    stacks = 2 * num_layers * (attention + feed_forward + 2 * norm) + 2 * norm * norm_first
    if not tied:
        return stacks + (source_vocab + 2 * target_vocab) * d_model
    if source_vocab == target_vocab:
        return stacks + target_vocab * d_model
    return stacks + (source_vocab + target_vocab) * d_model


@misconception(
    "count-parameters",
    id="FUL11",
    fails=["count-parameters-base", "count-parameters-options"],
    read="10_full_model#counting",
)
def shared_matrix_counted_twice(
    source_vocab, target_vocab, d_model, num_layers, d_ff, norm_first=False, tied=True
):
    """You count a shared matrix once for each of its users; it is learned once."""
    attention = 4 * d_model**2
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    stacks = num_layers * (3 * attention + 2 * feed_forward + 5 * norm) + 2 * norm * norm_first
    return stacks + (source_vocab + 2 * target_vocab) * d_model


@misconception(
    "count-parameters",
    id="FUL12",
    fails=["count-parameters-options"],
    read="10_full_model#counting",
)
def final_norms_forgotten(
    source_vocab, target_vocab, d_model, num_layers, d_ff, norm_first=False, tied=True
):
    """You leave out the norms after pre-norm stacks, a gain and a bias each."""
    attention = 4 * d_model**2
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    stacks = num_layers * (3 * attention + 2 * feed_forward + 10 * d_model)
    if not tied:
        return stacks + (source_vocab + 2 * target_vocab) * d_model
    if source_vocab == target_vocab:
        return stacks + target_vocab * d_model
    return stacks + (source_vocab + target_vocab) * d_model


@misconception(
    "count-parameters",
    id="FUL13",
    fails=["count-parameters-base"],
    read="10_full_model#counting",
)
def made_and_counted(
    source_vocab, target_vocab, d_model, num_layers, d_ff, norm_first=False, tied=True
):
    """You make the parts in order to count them; the count follows from the sizes alone."""
    with torch.device("meta"):
        stacks = [layer(d_model, 1, d_ff) for layer in (EncoderLayer, DecoderLayer)]
        norms = [LayerNorm(d_model) for _ in range(2 * norm_first)]
        matrices = [nn.Embedding(target_vocab, d_model)]
        if not tied:
            matrices.append(nn.Embedding(target_vocab, d_model))
        if not tied or source_vocab != target_vocab:
            matrices.append(nn.Embedding(source_vocab, d_model))
    parts = nn.ModuleList(num_layers * stacks + norms + matrices)
    return sum(num.numel() for part in parts for num in part.parameters())


# 10.4 The average of checkpoints


@misconception(
    "average-checkpoints",
    id="TRN16",
    fails=["average-checkpoints-values"],
    read="10_full_model#averaging",
)
def summed(checkpoints):
    """You return the sum of the checkpoints; divide by how many there are."""
    names = {frozenset(checkpoint) for checkpoint in checkpoints}
    if len(names) != 1:
        raise ValueError("checkpoints must have the same names")
    return {
        name: torch.stack([checkpoint[name] for checkpoint in checkpoints]).sum(0)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in checkpoints[-1].items()
    }


@misconception(
    "average-checkpoints",
    id="TRN16b",
    fails=["average-checkpoints-values"],
    read="10_full_model#averaging",
)
def counts_averaged(checkpoints):
    """You average whole numbers and booleans as well; a mean of counts is no count. Take them from
    the last checkpoint.
    """
    names = {frozenset(checkpoint) for checkpoint in checkpoints}
    if len(names) != 1:
        raise ValueError("checkpoints must have the same names")
    return {
        name: torch.stack([checkpoint[name].double() for checkpoint in checkpoints])
        .mean(0)
        .to(tensor.dtype)
        for name, tensor in checkpoints[-1].items()
    }


@misconception(
    "average-checkpoints",
    id="TRN16c",
    fails=["average-checkpoints-values", "average-checkpoints-copies"],
    read="10_full_model#averaging",
)
def summed_in_place(checkpoints):
    """You add into the first checkpoint's own tensors; they may be those of a model that is still
    being trained. Make new ones.
    """
    names = {frozenset(checkpoint) for checkpoint in checkpoints}
    if len(names) != 1:
        raise ValueError("checkpoints must have the same names")
    average = dict(checkpoints[0])
    for name, tensor in checkpoints[-1].items():
        if not tensor.is_floating_point():
            average[name] = tensor.clone()
            continue
        for checkpoint in checkpoints[1:]:
            average[name] += checkpoint[name]
        average[name] /= len(checkpoints)
    return average


@misconception(
    "average-checkpoints",
    id="TRN16d",
    fails=["average-checkpoints-copies"],
    read="10_full_model#averaging",
)
def counts_shared(checkpoints):
    """Your result shares memory with the last checkpoint: its whole numbers are the very same
    tensors. Copy them.
    """
    names = {frozenset(checkpoint) for checkpoint in checkpoints}
    if len(names) != 1:
        raise ValueError("checkpoints must have the same names")
    return {
        name: torch.stack([checkpoint[name] for checkpoint in checkpoints]).mean(0)
        if tensor.is_floating_point()
        else tensor
        for name, tensor in checkpoints[-1].items()
    }


@misconception(
    "average-checkpoints",
    id="TRN16e",
    fails=["average-checkpoints-values"],
    read="10_full_model#averaging",
)
def names_not_compared(checkpoints):
    """You do not compare the names: checkpoints of different models should raise a ValueError."""
    if not checkpoints:
        raise ValueError("there is no checkpoint to average")
    return {
        name: torch.stack([c[name] for c in checkpoints if name in c]).mean(0)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in checkpoints[-1].items()
    }


@misconception(
    "average-checkpoints",
    id="TRN16f",
    fails=["average-checkpoints-values"],
    read="10_full_model#averaging",
)
def averaged_in_single_precision(checkpoints):
    """You take the mean in float32, so numbers in float64 lose half of their digits; take it in the
    tensors' own precision or a higher one.
    """
    names = {frozenset(checkpoint) for checkpoint in checkpoints}
    if len(names) != 1:
        raise ValueError("checkpoints must have the same names")
    return {
        name: torch.stack([c[name].float() for c in checkpoints]).mean(0).to(tensor.dtype)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in checkpoints[-1].items()
    }


@misconception(
    "average-checkpoints",
    id="TRN16g",
    fails=["average-checkpoints-values"],
    read="10_full_model#averaging",
)
def names_compared_in_order(checkpoints):
    """You compare the names as lists, so the same names in another order are refused; compare them
    as sets.
    """
    if not checkpoints or any(list(c) != list(checkpoints[0]) for c in checkpoints):
        raise ValueError("checkpoints must have the same names")
    return {
        name: torch.stack([c[name] for c in checkpoints]).mean(0)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in checkpoints[-1].items()
    }


# 10.5 Find the fault


@misconception(
    "find-fault",
    id="FUL20",
    fails=["find-fault-all"],
    read="10_full_model#what-overfitting-misses",
)
def order_before_source(logits):
    """You look at the order before you know whether the source is read at all: what makes no
    difference makes none in another order, either.
    """
    source, target = torch.tensor([[3, 7, 5, 9]]), torch.tensor([[1, 4, 8]])
    base = logits(source, target)
    if torch.allclose(base.sum(-1), base.new_ones(1, 3)):
        return "probabilities"
    if torch.allclose(base, logits(source.flip(1), target), atol=1e-9):
        return "order"
    if torch.allclose(base, logits(torch.tensor([[3, 7, 6, 9]]), target), atol=1e-9):
        return "source"
    if not torch.allclose(base, logits(F.pad(source, (0, 2)), target), atol=1e-9):
        return "padding"
    later = logits(source, torch.tensor([[1, 4, 2]]))
    if not torch.allclose(base[:, :2], later[:, :2], atol=1e-9):
        return "future"
    if torch.allclose(base, logits(source, target, 3), atol=1e-9):
        return "offset"
    return "none"


@misconception(
    "find-fault",
    id="FUL21",
    fails=["find-fault-some", "find-fault-all"],
    read="07_decoder#decoder-mask",
)
def own_row_counted(logits):
    """You compare the row of the changed token as well. That row may change; only earlier ones
    must not.
    """
    source, target = torch.tensor([[3, 7, 5, 9]]), torch.tensor([[1, 4, 8]])
    base = logits(source, target)
    if torch.allclose(base.sum(-1), base.new_ones(1, 3)):
        return "probabilities"
    if torch.allclose(base, logits(torch.tensor([[3, 7, 6, 9]]), target), atol=1e-9):
        return "source"
    if torch.allclose(base, logits(source.flip(1), target), atol=1e-9):
        return "order"
    if not torch.allclose(base, logits(F.pad(source, (0, 2)), target), atol=1e-9):
        return "padding"
    later = logits(source, torch.tensor([[1, 4, 2]]))
    if not torch.allclose(base, later, atol=1e-9):
        return "future"
    if torch.allclose(base, logits(source, target, 3), atol=1e-9):
        return "offset"
    return "none"


@misconception(
    "find-fault",
    id="FUL22",
    fails=["find-fault-some", "find-fault-all"],
    read="10_full_model#what-overfitting-misses",
)
def only_the_winners_compared(logits):
    """You compare which token wins. A fault may move all numbers and leave the winners as they are:
    compare the numbers.
    """
    source, target = torch.tensor([[3, 7, 5, 9]]), torch.tensor([[1, 4, 8]])
    base = logits(source, target)

    def same(other):
        return torch.equal(base.argmax(-1), other.argmax(-1))

    if torch.allclose(base.sum(-1), base.new_ones(1, 3)):
        return "probabilities"
    if same(logits(torch.tensor([[3, 7, 6, 9]]), target)):
        return "source"
    if same(logits(source.flip(1), target)):
        return "order"
    if not same(logits(F.pad(source, (0, 2)), target)):
        return "padding"
    later = logits(source, torch.tensor([[1, 4, 2]]))
    if not torch.equal(base[:, :2].argmax(-1), later[:, :2].argmax(-1)):
        return "future"
    if same(logits(source, target, 3)):
        return "offset"
    return "none"


@misconception(
    "find-fault",
    id="FUL23",
    fails=["find-fault-some", "find-fault-all"],
    read="07_decoder#decoder-mask",
)
def later_token_never_changed(logits):
    """Your probe for the future changes the first token, which all rows may see. Change the last
    one and look at the rows before it.
    """
    source, target = torch.tensor([[3, 7, 5, 9]]), torch.tensor([[1, 4, 8]])
    base = logits(source, target)
    if torch.allclose(base.sum(-1), base.new_ones(1, 3)):
        return "probabilities"
    if torch.allclose(base, logits(torch.tensor([[3, 7, 6, 9]]), target), atol=1e-9):
        return "source"
    if torch.allclose(base, logits(source.flip(1), target), atol=1e-9):
        return "order"
    if not torch.allclose(base, logits(F.pad(source, (0, 2)), target), atol=1e-9):
        return "padding"
    later = logits(source, torch.tensor([[2, 4, 8]]))
    if torch.allclose(base[:, 1:], later[:, 1:], atol=1e-9):
        return "future"
    if torch.allclose(base, logits(source, target, 3), atol=1e-9):
        return "offset"
    return "none"


@misconception(
    "find-fault",
    id="FUL24",
    fails=["find-fault-some", "find-fault-all"],
    read="10_full_model#what-overfitting-misses",
)
def padding_in_front(logits):
    """You put padding in front of the source. That moves its words to other positions, and a right
    model answers differently; put it behind.
    """
    source, target = torch.tensor([[3, 7, 5, 9]]), torch.tensor([[1, 4, 8]])
    base = logits(source, target)
    if torch.allclose(base.sum(-1), base.new_ones(1, 3)):
        return "probabilities"
    if torch.allclose(base, logits(torch.tensor([[3, 7, 6, 9]]), target), atol=1e-9):
        return "source"
    if torch.allclose(base, logits(source.flip(1), target), atol=1e-9):
        return "order"
    if not torch.allclose(base, logits(F.pad(source, (2, 0)), target), atol=1e-9):
        return "padding"
    later = logits(source, torch.tensor([[1, 4, 2]]))
    if not torch.allclose(base[:, :2], later[:, :2], atol=1e-9):
        return "future"
    if torch.allclose(base, logits(source, target, 3), atol=1e-9):
        return "offset"
    return "none"


@misconception(
    "find-fault",
    id="FUL25",
    fails=["find-fault-all"],
    read="10_full_model#what-overfitting-misses",
)
def offset_never_tried(logits):
    """You never call the model with another offset, so a model that always counts from 0 passes
    for a right one.
    """
    source, target = torch.tensor([[3, 7, 5, 9]]), torch.tensor([[1, 4, 8]])
    base = logits(source, target)
    if torch.allclose(base.sum(-1), base.new_ones(1, 3)):
        return "probabilities"
    if torch.allclose(base, logits(torch.tensor([[3, 7, 6, 9]]), target), atol=1e-9):
        return "source"
    if torch.allclose(base, logits(source.flip(1), target), atol=1e-9):
        return "order"
    if not torch.allclose(base, logits(F.pad(source, (0, 2)), target), atol=1e-9):
        return "padding"
    later = logits(source, torch.tensor([[1, 4, 2]]))
    if not torch.allclose(base[:, :2], later[:, :2], atol=1e-9):
        return "future"
    return "none"


@misconception(
    "find-fault",
    id="FUL26",
    fails=["find-fault-some", "find-fault-all"],
    read="10_full_model#what-overfitting-misses",
)
def negative_means_logits(logits):
    """You take something for a sign of probabilities that holds of logits, too. The numbers of a
    row that are probabilities lie between 0 and 1 and add up to 1.
    """
    source, target = torch.tensor([[3, 7, 5, 9]]), torch.tensor([[1, 4, 8]])
    base = logits(source, target)
    if base[0, 0].argmax() == base[0, 0].softmax(-1).argmax():
        return "probabilities"
    if torch.allclose(base, logits(torch.tensor([[3, 7, 6, 9]]), target), atol=1e-9):
        return "source"
    if torch.allclose(base, logits(source.flip(1), target), atol=1e-9):
        return "order"
    if not torch.allclose(base, logits(F.pad(source, (0, 2)), target), atol=1e-9):
        return "padding"
    later = logits(source, torch.tensor([[1, 4, 2]]))
    if not torch.allclose(base[:, :2], later[:, :2], atol=1e-9):
        return "future"
    if torch.allclose(base, logits(source, target, 3), atol=1e-9):
        return "offset"
    return "none"


@misconception(
    "initialise",
    id="TRN8f",
    fails=["initialise-tied"],
    read="10_full_model#first-numbers",
)
def seeded_inside(model):
    """You set torch's seed inside: every call draws the same numbers. The seed is the caller's."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)


@misconception(
    "average-checkpoints",
    id="TRN16h",
    fails=["average-checkpoints-values"],
    read="10_full_model#averaging",
)
def names_of_the_first_only(checkpoints):
    """You only look whether each checkpoint has the first one's names; a later one may have names
    that the first has not.
    """
    if not checkpoints:
        raise ValueError("there is no checkpoint to average")
    first, last = checkpoints[0], checkpoints[-1]
    if any(name not in checkpoint for checkpoint in checkpoints for name in first):
        raise ValueError("a checkpoint lacks a name")
    return {
        name: torch.stack([c[name] for c in checkpoints]).mean(0)
        if tensor.is_floating_point()
        else last[name].clone()
        for name, tensor in first.items()
    }


@misconception(
    "initialise",
    id="TRN8g",
    fails=["initialise-tied"],
    read="10_full_model#first-numbers",
)
def seeded_by_chance(model):
    """You give torch a new seed inside, so the caller's seed is lost, and nobody can draw the same
    numbers again. The seed is the caller's.
    """
    torch.seed()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)


@misconception(
    "initialise",
    id="TRN8h",
    fails=["initialise-values"],
    read="10_full_model#first-numbers",
)
def buffers_drawn(model):
    """You draw the buffers as well, so the table of positions is lost; a buffer is no parameter and
    stays as it is.
    """
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.dim() == 2:
            nn.init.xavier_uniform_(tensor)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)


@misconception(
    "initialise",
    id="TRN8i",
    fails=["initialise-values"],
    read="10_full_model#first-numbers",
)
def by_the_name_weight(model):
    """You draw the matrices of some modules or names only, such as `weight`; others may stand
    anywhere. Ask every parameter whether it has two axes, and nothing else.
    """
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and name.endswith("weight"):
            nn.init.xavier_uniform_(parameter)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)


@misconception(
    "count-parameters",
    id="FUL14",
    fails=["count-parameters-base"],
    read="10_full_model#counting",
)
def counted_in_floats(
    source_vocab, target_vocab, d_model, num_layers, d_ff, norm_first=False, tied=True
):
    """You count in floats and round at the end: a float keeps 16 digits, so a large count loses its
    last ones. Use whole numbers throughout.
    """
    attention = 4 * d_model**2.0
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    count = num_layers * (3 * attention + 2 * feed_forward + 5 * norm) + 2 * norm * norm_first
    if not tied:
        count += (source_vocab + 2 * target_vocab) * d_model
    elif source_vocab == target_vocab:
        count += target_vocab * d_model
    else:
        count += (source_vocab + target_vocab) * d_model
    return int(count)


@misconception(
    "average-checkpoints",
    id="TRN16i",
    fails=["average-checkpoints-values"],
    read="10_full_model#averaging",
)
def single_numbers_not_averaged(checkpoints):
    """You take single numbers from the last checkpoint, also where they are floating-point; it is
    the dtype, not the shape, that says what is averaged.
    """
    names = {frozenset(checkpoint) for checkpoint in checkpoints}
    if len(names) != 1:
        raise ValueError("checkpoints must have the same names")
    return {
        name: torch.stack([c[name] for c in checkpoints]).mean(0)
        if tensor.dim() and tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in checkpoints[-1].items()
    }


@misconception(
    "average-checkpoints",
    id="TRN16j",
    fails=["average-checkpoints-values"],
    read="10_full_model#averaging",
)
def names_counted(checkpoints):
    """You only compare how many names there are; as many others should raise a ValueError, too."""
    if len({len(checkpoint) for checkpoint in checkpoints}) != 1:
        raise ValueError("checkpoints must have the same names")
    return {
        name: torch.stack([c[name] for c in checkpoints]).mean(0)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in checkpoints[-1].items()
    }
