"""Wrong answers to the exercise on language models, as students write them, and what each shows."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from lab.answers import misconception
from lab.blocks import (
    Encoder,
    EncoderLayer,
    Generator,
    LayerNorm,
    PositionalEncoding,
    TokenEmbedding,
    causal_mask,
)

# 12.1 One stream


@misconception(
    "windows",
    id="LM1",
    fails=["windows-shift", "windows-count"],
    read="12_language_model#lm-stream",
)
def labels_cut_from_the_rows(stream, length):
    """You shift inside the rows, so each row is one short and its last token has no label: cut
    the labels from the text.
    """
    if length < 1:
        raise ValueError("length must be at least 1")
    rows = len(stream) // length
    cut = stream[: rows * length].view(rows, length)
    return cut[:, :-1], cut[:, 1:]


@misconception(
    "windows",
    id="LM2",
    fails=["windows-shift", "windows-count"],
    read="12_language_model#lm-stream",
)
def the_last_label_is_missing(stream, length):
    """You count rows as if no label were needed after the last token: 8 tokens hold one window
    of 4 whose labels are all there.
    """
    if length < 1:
        raise ValueError("length must be at least 1")
    rows = len(stream) // length
    labels = torch.cat([stream[1:], stream[:1]])
    end = rows * length
    return stream[:end].view(rows, length), labels[:end].view(rows, length)


@misconception(
    "windows",
    id="LM3",
    fails=["windows-shift", "windows-count"],
    read="12_language_model#lm-stream",
)
def windows_that_overlap(stream, length):
    """Your windows begin at every token and overlap; they should follow one another."""
    if length < 1:
        raise ValueError("length must be at least 1")
    if len(stream) <= length:
        empty = stream.new_zeros(0, length)
        return empty, empty
    cut = stream.unfold(0, length + 1, 1)
    return cut[:, :-1], cut[:, 1:]


@misconception(
    "windows",
    id="LM4",
    fails=["windows-shift"],
    read="12_language_model#lm-stream",
)
def labels_one_behind(stream, length):
    """Your labels are the tokens before: the model would learn to say what it has read already."""
    if length < 1:
        raise ValueError("length must be at least 1")
    rows = max(0, len(stream) - 1) // length
    end = rows * length
    return stream[1 : end + 1].view(rows, length), stream[:end].view(rows, length)


@misconception(
    "windows",
    id="LM5",
    fails=["windows-shift"],
    read="12_language_model#lm-stream",
)
def a_column_for_a_row(stream, length):
    """Neighbours of the text stand below each other in your tensors; they belong side by side,
    in a row.
    """
    if length < 1:
        raise ValueError("length must be at least 1")
    rows = max(0, len(stream) - 1) // length
    end = rows * length
    return stream[:end].view(length, rows).T, stream[1 : end + 1].view(length, rows).T


# 12.2 A decoder without a source


@misconception(
    "language-model",
    id="LM6",
    fails=["language-model-parts", "language-model-values"],
    read="12_language_model#lm-decoder",
    target="LanguageModel.__init__",
)
def not_tied(self, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0):
    """Your generator has a matrix of its own; tie it to the embedding."""
    nn.Module.__init__(self)
    d_model = encoding.shape[1]
    self.embedding = TokenEmbedding(vocab_size, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)

    self.stack = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
        num_layers,
        LayerNorm(d_model),
    )
    self.generator = Generator(d_model, vocab_size)


@misconception(
    "language-model",
    id="LM7",
    fails=["language-model-values"],
    read="12_language_model#lm-decoder",
    target="LanguageModel.__init__",
)
def post_norm(self, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0):
    """Your layers are post-norm; this model normalises before each sub-layer."""
    nn.Module.__init__(self)
    d_model = encoding.shape[1]
    self.embedding = TokenEmbedding(vocab_size, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)

    self.stack = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout), num_layers, LayerNorm(d_model)
    )
    self.generator = Generator(d_model, vocab_size)
    self.generator.tie(self.embedding.weight)


@misconception(
    "language-model",
    id="LM8",
    fails=["language-model-parts", "language-model-values"],
    read="12_language_model#lm-decoder",
    target="LanguageModel.__init__",
)
def no_norm_at_the_end(self, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0):
    """Your stack has no norm at its end, which pre-norm layers need: nothing has normalised what
    they add up.
    """
    nn.Module.__init__(self)
    d_model = encoding.shape[1]
    self.embedding = TokenEmbedding(vocab_size, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)

    self.stack = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True), num_layers, None
    )
    self.generator = Generator(d_model, vocab_size)
    self.generator.tie(self.embedding.weight)


@misconception(
    "language-model",
    id="LM9",
    fails=["language-model-parts"],
    read="12_language_model#lm-decoder",
    target="LanguageModel.__init__",
)
def one_layer_for_all(self, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0):
    """Your layers are one and the same, used several times: make a new one at each call."""
    nn.Module.__init__(self)
    d_model = encoding.shape[1]
    self.embedding = TokenEmbedding(vocab_size, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)
    layer = EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True)
    self.stack = Encoder(lambda: layer, num_layers, LayerNorm(d_model))
    self.generator = Generator(d_model, vocab_size)
    self.generator.tie(self.embedding.weight)


@misconception(
    "language-model",
    id="LM10",
    fails=["language-model-parts", "language-model-values"],
    read="12_language_model#lm-decoder",
    target="LanguageModel.__init__",
)
def dropout_forgotten(self, vocab_size, encoding, num_layers, num_heads, d_ff, dropout=0.0):
    """Your layers drop nothing: hand the rate on to them."""
    nn.Module.__init__(self)
    d_model = encoding.shape[1]
    self.embedding = TokenEmbedding(vocab_size, d_model)
    self.positional_encoding = PositionalEncoding(encoding, dropout)

    self.stack = Encoder(
        lambda: EncoderLayer(d_model, num_heads, d_ff, norm_first=True),
        num_layers,
        LayerNorm(d_model),
    )
    self.generator = Generator(d_model, vocab_size)
    self.generator.tie(self.embedding.weight)


@misconception(
    "language-model",
    id="LM11",
    fails=["language-model-values", "language-model-prefix"],
    read="12_language_model#lm-decoder",
    target="LanguageModel.forward",
)
def no_mask(self, ids, offset=0):
    """Every place of yours sees the whole window, the token that it should predict among them:
    hand the causal mask to the stack.
    """
    x = self.positional_encoding(self.embedding(ids), offset)
    return self.generator(self.stack(x))


@misconception(
    "language-model",
    id="LM12",
    fails=["language-model-values", "language-model-prefix"],
    read="12_language_model#lm-decoder",
    target="LanguageModel.forward",
)
def mask_upside_down(self, ids, offset=0):
    """Your mask lets a token see those after it, and hides those before."""
    x = self.positional_encoding(self.embedding(ids), offset)
    return self.generator(self.stack(x, causal_mask(ids.shape[1]).T))


@misconception(
    "language-model",
    id="LM13",
    fails=["language-model-prefix"],
    read="12_language_model#lm-cache",
    target="LanguageModel.forward",
)
def offset_left_out(self, ids, offset=0):
    """You do not hand the offset on, so new tokens get the positions of the first ones."""
    x = self.positional_encoding(self.embedding(ids))
    return self.generator(self.stack(x, causal_mask(ids.shape[1])))


@misconception(
    "language-model",
    id="LM14",
    fails=["language-model-values"],
    read="12_language_model#lm-decoder",
    target="LanguageModel.forward",
)
def no_positions(self, ids, offset=0):
    """You add no positions."""
    x = self.embedding(ids)
    return self.generator(self.stack(x, causal_mask(ids.shape[1])))


@misconception(
    "language-model",
    id="LM15",
    fails=["language-model-values"],
    read="12_language_model#lm-decoder",
    target="LanguageModel.forward",
)
def probabilities_for_logits(self, ids, offset=0):
    """You return probabilities; the loss and the sampling take the softmax themselves."""
    x = self.positional_encoding(self.embedding(ids), offset)
    return self.generator(self.stack(x, causal_mask(ids.shape[1]))).softmax(-1)


@misconception(
    "language-model",
    id="LM16",
    fails=["language-model-values", "language-model-prefix"],
    read="12_language_model#lm-incremental",
    target="LanguageModel.forward",
)
def last_place_only(self, ids, offset=0):
    """You return the logits of the last place only; one pass gives a prediction after every
    prefix.
    """
    x = self.positional_encoding(self.embedding(ids), offset)
    return self.generator(self.stack(x, causal_mask(ids.shape[1]))[:, -1:])


# 12.3 Perplexity, by token and by byte


@misconception(
    "perplexities",
    id="LM17",
    fails=["perplexities-token"],
    read="12_language_model#lm-perplexity",
)
def mean_of_row_means(logits, labels, sizes, pad_id):
    """You take the mean of the rows' means, so a label of a short row counts for more; add up
    over the whole batch, and divide once.
    """
    real = labels != pad_id
    if not real.any():
        raise ValueError("all is padding")
    losses = -logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    rows = (losses * real).sum(1) / real.sum(1)
    total, size = losses[real].sum(), sizes[labels[real]].sum()
    return rows.mean().exp().item(), (total / size).exp().item()


@misconception(
    "perplexities",
    id="LM18",
    fails=["perplexities-token", "perplexities-byte"],
    read="12_language_model#lm-perplexity",
)
def padding_counted(logits, labels, sizes, pad_id):
    """Padding counts among your labels, and its bytes among the bytes."""
    real = labels != pad_id
    if not real.any():
        raise ValueError("all is padding")
    losses = -logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    total = losses.sum()
    return (total / losses.numel()).exp().item(), (total / sizes[labels].sum()).exp().item()


@misconception(
    "perplexities",
    id="LM19",
    fails=["perplexities-token"],
    read="12_language_model#lm-perplexity",
)
def mean_of_perplexities(logits, labels, sizes, pad_id):
    """You take the mean of the labels' perplexities, which the largest one rules: average the
    losses first, and exponentiate last.
    """
    real = labels != pad_id
    if not real.any():
        raise ValueError("all is padding")
    losses = -logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    total, size = losses[real].sum(), sizes[labels[real]].sum()
    return losses[real].exp().mean().item(), (total / size).exp().item()


@misconception(
    "perplexities",
    id="LM20",
    fails=["perplexities-byte"],
    read="12_language_model#lm-perplexity",
)
def perplexity_divided_by_bytes(logits, labels, sizes, pad_id):
    """Your perplexity of a byte is that of a token, divided by the bytes of a token. Divide the
    loss, which is a logarithm, and exponentiate then.
    """
    real = labels != pad_id
    if not real.any():
        raise ValueError("all is padding")
    losses = -logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    total, size = losses[real].sum(), sizes[labels[real]].sum()
    token = (total / real.sum()).exp()
    return token.item(), (token / (size / real.sum())).item()


@misconception(
    "perplexities",
    id="LM21",
    fails=["perplexities-byte"],
    read="12_language_model#lm-perplexity",
)
def bytes_of_the_vocabulary(logits, labels, sizes, pad_id):
    """Your bytes are those of the vocabulary, each token once; count those of the labels, each
    as often as it occurs.
    """
    real = labels != pad_id
    if not real.any():
        raise ValueError("all is padding")
    losses = -logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    total = losses[real].sum()
    mean = sizes.double().mean() * real.sum()
    return (total / real.sum()).exp().item(), (total / mean).exp().item()


@misconception(
    "perplexities",
    id="LM22",
    fails=["perplexities-token", "perplexities-byte"],
    read="12_language_model#lm-perplexity",
)
def with_base_two(logits, labels, sizes, pad_id):
    """You raise 2 to the power of the loss; losses from natural logarithms belong to e."""
    real = labels != pad_id
    if not real.any():
        raise ValueError("all is padding")
    losses = -logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    total, size = losses[real].sum(), sizes[labels[real]].sum()
    return 2 ** (total / real.sum()).item(), 2 ** (total / size).item()


@misconception(
    "perplexities",
    id="LM23",
    fails=["perplexities-byte"],
    read="12_language_model#lm-perplexity",
)
def padding_left_in_the_bytes(logits, labels, sizes, pad_id):
    """The bytes of padding are among yours."""
    real = labels != pad_id
    if not real.any():
        raise ValueError("all is padding")
    losses = -logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    total = losses[real].sum()
    return (total / real.sum()).exp().item(), (total / sizes[labels].sum()).exp().item()


@misconception(
    "perplexities",
    id="LM24",
    fails=["perplexities-token"],
    read="12_language_model#lm-perplexity",
)
def softmax_then_logarithm(logits, labels, sizes, pad_id):
    """Your softmax has rounded a small probability to 0 before you take its logarithm: use
    log_softmax, which does both at once.
    """
    real = labels != pad_id
    if not real.any():
        raise ValueError("all is padding")
    losses = -logits.softmax(-1).log().gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    losses = torch.where(real, losses, losses * 0)
    total, size = losses.sum(), sizes[labels[real]].sum()
    return (total / real.sum()).exp().item(), (total / size).exp().item()


# 12.4 Write on


@misconception(
    "write-on",
    id="LM25",
    fails=["write-on-tokens", "write-on-economy"],
    read="12_language_model#lm-cache",
)
def offset_always_0(model, prompt, count, choose):
    """Your offset is 0 at each call, so every token stands in the first place for the model."""
    was_training = model.training
    model.eval()
    model.reset()
    new, _offset, written = prompt, 0, prompt[:, :0]
    with torch.no_grad():
        for _ in range(count):
            logits = model(new, 0)[:, -1]
            new = choose(logits).unsqueeze(1)
            written = torch.cat([written, new], dim=1)
    model.train(was_training)
    return written


@misconception(
    "write-on",
    id="LM26",
    fails=["write-on-tokens", "write-on-economy"],
    read="12_language_model#lm-cache",
)
def offset_without_the_prompt(model, prompt, count, choose):
    """Your offsets count the new tokens only; the prompt's tokens stand before them."""
    was_training = model.training
    model.eval()
    model.reset()
    new, _offset, written = prompt, 0, prompt[:, :0]
    with torch.no_grad():
        for step in range(count):
            logits = model(new, max(0, step - 1) if step else 0)[:, -1]
            new = choose(logits).unsqueeze(1)
            written = torch.cat([written, new], dim=1)
    model.train(was_training)
    return written


@misconception(
    "write-on",
    id="LM27",
    fails=["write-on-tokens", "write-on-economy"],
    read="12_language_model#lm-cache",
)
def all_read_again(model, prompt, count, choose):
    """You hand over the whole text at each call; the model remembers it and needs the new token
    only.
    """
    was_training = model.training
    model.eval()
    model.reset()
    new, _offset, written = prompt, 0, prompt[:, :0]
    with torch.no_grad():
        ids = prompt
        for _ in range(count):
            new = choose(model(ids, 0)[:, -1]).unsqueeze(1)
            ids = torch.cat([ids, new], dim=1)
            written = torch.cat([written, new], dim=1)
    model.train(was_training)
    return written


@misconception(
    "write-on",
    id="LM28",
    fails=["write-on-tokens", "write-on-economy"],
    read="12_language_model#lm-cache",
)
def first_logits(model, prompt, count, choose):
    """You choose by the logits at the prompt's first token; those at its last one have seen it
    all.
    """
    was_training = model.training
    model.eval()
    model.reset()
    new, offset, written = prompt, 0, prompt[:, :0]
    with torch.no_grad():
        for _ in range(count):
            logits = model(new, offset)[:, 0]
            offset += new.shape[1]
            new = choose(logits).unsqueeze(1)
            written = torch.cat([written, new], dim=1)
    model.train(was_training)
    return written


@misconception(
    "write-on",
    id="LM29",
    fails=["write-on-economy"],
    read="12_language_model#lm-cache",
)
def prompt_token_by_token(model, prompt, count, choose):
    """You read the prompt token by token; it is known, so one call does for all of it."""
    was_training = model.training
    model.eval()
    model.reset()
    new, offset, written = prompt, 0, prompt[:, :0]
    with torch.no_grad():
        logits = None
        for i in range(prompt.shape[1] if count else 0):
            logits = model(prompt[:, i : i + 1], i)[:, -1]
        offset = prompt.shape[1]
        for step in range(count):
            new = choose(logits).unsqueeze(1)
            written = torch.cat([written, new], dim=1)
            if step + 1 < count:
                logits = model(new, offset)[:, -1]
                offset += 1
    model.train(was_training)
    return written


@misconception(
    "write-on",
    id="LM30",
    fails=["write-on-economy"],
    read="12_language_model#lm-cache",
)
def last_token_read_for_nothing(model, prompt, count, choose):
    """You have the model read the last token that you chose; nobody asks what comes after it."""
    was_training = model.training
    model.eval()
    model.reset()
    new, offset, written = prompt, 0, prompt[:, :0]
    with torch.no_grad():
        logits = model(new, offset)[:, -1] if count else None
        offset = prompt.shape[1]
        for _ in range(count):
            new = choose(logits).unsqueeze(1)
            written = torch.cat([written, new], dim=1)
            logits = model(new, offset)[:, -1]
            offset += 1
    model.train(was_training)
    return written


@misconception(
    "write-on",
    id="LM31",
    fails=["write-on-tokens", "write-on-economy"],
    read="12_language_model#lm-cache",
)
def prompt_returned_too(model, prompt, count, choose):
    """You return the prompt as well; only the new tokens are asked for."""
    was_training = model.training
    model.eval()
    model.reset()
    new, offset, written = prompt, 0, prompt[:, :0]
    written = prompt
    with torch.no_grad():
        for _ in range(count):
            logits = model(new, offset)[:, -1]
            offset += new.shape[1]
            new = choose(logits).unsqueeze(1)
            written = torch.cat([written, new], dim=1)
    model.train(was_training)
    return written


@misconception(
    "write-on",
    id="LM32",
    fails=["write-on-economy"],
    read="12_language_model#lm-cache",
)
def mode_not_put_back(model, prompt, count, choose):
    """You leave the model in evaluation mode; put back the mode in which you found it."""
    model.eval()
    model.reset()
    new, offset, written = prompt, 0, prompt[:, :0]
    with torch.no_grad():
        for _ in range(count):
            logits = model(new, offset)[:, -1]
            offset += new.shape[1]
            new = choose(logits).unsqueeze(1)
            written = torch.cat([written, new], dim=1)
    return written


@misconception(
    "write-on",
    id="LM33",
    fails=["write-on-tokens", "write-on-economy"],
    read="12_language_model#lm-cache",
)
def never_reset(model, prompt, count, choose):
    """You do not let the model forget: it goes on with the text that it read before."""
    was_training = model.training
    model.eval()
    new, offset, written = prompt, 0, prompt[:, :0]
    with torch.no_grad():
        for _ in range(count):
            logits = model(new, offset)[:, -1]
            offset += new.shape[1]
            new = choose(logits).unsqueeze(1)
            written = torch.cat([written, new], dim=1)
    model.train(was_training)
    return written


@misconception(
    "write-on",
    id="LM34",
    fails=["write-on-economy"],
    read="12_language_model#lm-cache",
)
def gradients_recorded(model, prompt, count, choose):
    """You record gradients while the model writes; nobody will ask for them."""
    was_training = model.training
    model.eval()
    model.reset()
    new, offset, written = prompt, 0, prompt[:, :0]
    for _ in range(count):
        logits = model(new, offset)[:, -1]
        offset += new.shape[1]
        new = choose(logits).unsqueeze(1)
        written = torch.cat([written, new], dim=1)
    model.train(was_training)
    return written


# 12.5 What may be drawn


@misconception(
    "shaped",
    id="LM35",
    fails=["shaped-nucleus"],
    read="12_language_model#lm-sampling",
)
def the_crossing_token_dropped(logits, temperature=1.0, top_k=None, top_p=None):
    """You drop the token that crosses top_p, so what is left has less: keep tokens until they
    have at least top_p.
    """
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be above 0 and at most 1")
    scaled = logits / temperature
    if top_k is not None:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    chances = scaled.softmax(-1)
    if top_p is not None:
        ordered, ids = chances.sort(dim=-1, descending=True)
        late = ordered.cumsum(-1) > top_p + 1e-12
        late[:, 0] = False
        dropped = torch.zeros_like(late).scatter(-1, ids, late)
        chances = scaled.masked_fill(dropped, -math.inf).softmax(-1)
    return chances


@misconception(
    "shaped",
    id="LM36",
    fails=["shaped-nucleus"],
    read="12_language_model#lm-sampling",
)
def ranks_taken_for_ids(logits, temperature=1.0, top_k=None, top_p=None):
    """You drop by rank and not by token: after sorting, place i is the i-th likeliest. Lead the
    mask back by the sort's indices.
    """
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be above 0 and at most 1")
    scaled = logits / temperature
    if top_k is not None:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    chances = scaled.softmax(-1)
    if top_p is not None:
        ordered = chances.sort(dim=-1, descending=True).values
        before = ordered.cumsum(-1) - ordered
        chances = scaled.masked_fill(before >= top_p, -math.inf).softmax(-1)
    return chances


@misconception(
    "shaped",
    id="LM37",
    fails=["shaped-nucleus"],
    read="12_language_model#lm-sampling",
)
def not_normalised_again(logits, temperature=1.0, top_k=None, top_p=None):
    """What you keep does not add up to 1: normalise it again."""
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be above 0 and at most 1")
    scaled = logits / temperature
    if top_k is not None:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    chances = scaled.softmax(-1)
    if top_p is not None:
        ordered, ids = chances.sort(dim=-1, descending=True)
        before = ordered.cumsum(-1) - ordered
        dropped = torch.zeros_like(before, dtype=torch.bool).scatter(-1, ids, before >= top_p)
        chances = chances.masked_fill(dropped, 0.0)
    return chances


@misconception(
    "shaped",
    id="LM38",
    fails=["shaped-nucleus", "shaped-rest"],
    read="12_language_model#lm-sampling",
)
def temperature_on_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    """You divide probabilities by the temperature, which normalising undoes; divide the logits."""
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be above 0 and at most 1")
    scaled = (logits.softmax(-1) / temperature).log()
    if top_k is not None:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    chances = scaled.softmax(-1)
    if top_p is not None:
        ordered, ids = chances.sort(dim=-1, descending=True)
        before = ordered.cumsum(-1) - ordered
        dropped = torch.zeros_like(before, dtype=torch.bool).scatter(-1, ids, before >= top_p)
        chances = scaled.masked_fill(dropped, -math.inf).softmax(-1)
    return chances


@misconception(
    "shaped",
    id="LM39",
    fails=["shaped-nucleus"],
    read="12_language_model#lm-sampling",
)
def temperature_last(logits, temperature=1.0, top_k=None, top_p=None):
    """You bring in the temperature last; it comes first and changes what top_p keeps."""
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be above 0 and at most 1")
    scaled = logits
    if top_k is not None:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    chances = scaled.softmax(-1)
    if top_p is not None:
        ordered, ids = chances.sort(dim=-1, descending=True)
        before = ordered.cumsum(-1) - ordered
        dropped = torch.zeros_like(before, dtype=torch.bool).scatter(-1, ids, before >= top_p)
        scaled = scaled.masked_fill(dropped, -math.inf)
    return (scaled / temperature).softmax(-1)


@misconception(
    "shaped",
    id="LM40",
    fails=["shaped-nucleus"],
    read="12_language_model#lm-sampling",
)
def top_p_of_all(logits, temperature=1.0, top_k=None, top_p=None):
    """Your top_p is about all tokens; it should be about what top_k has left, which adds up to 1
    by itself.
    """
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be above 0 and at most 1")
    scaled = logits / temperature
    if top_k is not None:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    chances = scaled.softmax(-1)
    if top_p is not None:
        ordered, ids = (logits / temperature).softmax(-1).sort(dim=-1, descending=True)
        before = ordered.cumsum(-1) - ordered
        dropped = torch.zeros_like(before, dtype=torch.bool).scatter(-1, ids, before >= top_p)
        chances = scaled.masked_fill(dropped, -math.inf).softmax(-1)
    return chances


@misconception(
    "shaped",
    id="LM41",
    fails=["shaped-nucleus"],
    read="12_language_model#lm-sampling",
)
def above_a_threshold(logits, temperature=1.0, top_k=None, top_p=None):
    """You keep tokens whose own probability is large; top_p is about the sum of the likeliest
    ones.
    """
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be above 0 and at most 1")
    scaled = logits / temperature
    if top_k is not None:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    chances = scaled.softmax(-1)
    if top_p is not None:
        dropped = chances < (1 - top_p) * chances.max(-1, keepdim=True).values
        chances = scaled.masked_fill(dropped, -math.inf).softmax(-1)
    return chances


@misconception(
    "shaped",
    id="LM42",
    fails=["shaped-rest"],
    read="12_language_model#lm-sampling",
)
def too_large_a_top_k(logits, temperature=1.0, top_k=None, top_p=None):
    """A top_k above V stops yours with an error; it is as good as V."""
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be above 0 and at most 1")
    scaled = logits / temperature
    if top_k is not None:
        least = scaled.topk(top_k).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    chances = scaled.softmax(-1)
    if top_p is not None:
        ordered, ids = chances.sort(dim=-1, descending=True)
        before = ordered.cumsum(-1) - ordered
        dropped = torch.zeros_like(before, dtype=torch.bool).scatter(-1, ids, before >= top_p)
        chances = scaled.masked_fill(dropped, -math.inf).softmax(-1)
    return chances


# 12.6 Early and late


@misconception(
    "predicted-loss",
    id="LM43",
    fails=["predicted-loss-made"],
    read="12_language_model#lm-position",
)
def a_share_as_a_number():
    """Your prediction is a number; return one of the texts in LOST."""
    return 0.05


@misconception(
    "predicted-loss",
    id="LM44",
    fails=["predicted-loss-made"],
    read="12_language_model#lm-position",
)
def no_prediction():
    """You have not predicted anything: return one of the texts in LOST."""
    return


@misconception(
    "predicted-loss",
    id="LM45",
    fails=["predicted-loss-made"],
    read="12_language_model#lm-position",
)
def words_of_ones_own():
    """Your prediction is none of the four; return one of the texts in LOST as it stands there."""
    return "hardly anything"


@misconception(
    "measured-early",
    id="LM46",
    fails=["measured-early-consistent"],
    read="12_language_model#lm-position",
)
def not_measured():
    """Your numbers are 0: run the cell above, and return what it prints last."""
    return {
        "whole": 0.0,
        "without": 0.0,
        "first": 0.0,
        "last": 0.0,
        "first_best": 0.0,
        "last_best": 0.0,
    }


@misconception(
    "measured-early",
    id="LM47",
    fails=["measured-early-consistent"],
    read="12_language_model#lm-position",
)
def perplexities_for_losses():
    """Your numbers are perplexities; the cell prints losses, their logarithms."""
    return {
        "whole": 4.302,
        "without": 4.721,
        "first": 6.54,
        "last": 4.158,
        "first_best": 6.398,
        "last_best": 3.904,
    }


@misconception(
    "measured-early",
    id="LM48",
    fails=["measured-early-consistent"],
    read="12_language_model#lm-position",
)
def better_than_the_best():
    """Your model is better than the best reader can be: you have exchanged the two losses of a
    place.
    """
    return {
        "whole": 1.459,
        "without": 1.552,
        "first": 1.856,
        "last": 1.362,
        "first_best": 1.878,
        "last_best": 1.425,
    }


@misconception(
    "measured-early",
    id="LM49",
    fails=["measured-early-consistent"],
    read="12_language_model#lm-position",
)
def first_and_last_exchanged():
    """The loss of your last words is larger than that of the first: you have exchanged them, and
    the best ones too.
    """
    return {
        "whole": 1.459,
        "without": 1.552,
        "first": 1.425,
        "last": 1.878,
        "first_best": 1.362,
        "last_best": 1.856,
    }


# 12.7 Too good to be true


@misconception(
    "leak-causes",
    id="LM50",
    fails=["leak-causes-lines"],
    read="12_language_model#lm-leaks",
)
def peeks_where_labels_are_cut():
    """You suspect the labels; they are one token ahead, as they should be. Which line lets a
    place see the token after it?
    """
    return {"peeks": 1, "drifts": 5, "sums": 6, "pads": 8}


@misconception(
    "leak-causes",
    id="LM51",
    fails=["leak-causes-lines"],
    read="12_language_model#lm-leaks",
)
def drifts_in_the_stack():
    """You suspect the stack; but what drifts does so with a stack that does nothing. What else
    adds up over places?
    """
    return {"peeks": 3, "drifts": 4, "sums": 6, "pads": 8}


@misconception(
    "leak-causes",
    id="LM52",
    fails=["leak-causes-lines"],
    read="12_language_model#lm-leaks",
)
def sums_where_gathered():
    """You suspect the gathering, which takes one number of each place as it is. Along which axis
    was the softmax?
    """
    return {"peeks": 3, "drifts": 5, "sums": 7, "pads": 8}


@misconception(
    "leak-causes",
    id="LM53",
    fails=["leak-causes-lines"],
    read="12_language_model#lm-leaks",
)
def pads_in_the_inputs():
    """You suspect the inputs. Padding there comes after the real tokens, which do not see it;
    look at what is averaged.
    """
    return {"peeks": 3, "drifts": 5, "sums": 6, "pads": 1}


@misconception(
    "honest-loss",
    id="LM54",
    fails=["honest-loss-values"],
    read="12_language_model#lm-leaks",
)
def one_ahead(ids, parts, pad_id):
    """Your mask lets each place see the token after it, which is its label."""
    inputs, labels = ids[:, :-1], ids[:, 1:]
    n = inputs.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril(1)
    x = parts["stack"](parts["embed"](inputs), mask)
    log_p = parts["head"](x).log_softmax(-1)
    losses = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return losses[labels != pad_id].mean()


@misconception(
    "honest-loss",
    id="LM55",
    fails=["honest-loss-values"],
    read="12_language_model#lm-leaks",
)
def centred_over_places(ids, parts, pad_id):
    """You take the mean over all places off, later ones among them: each place knows something
    of all.
    """
    inputs, labels = ids[:, :-1], ids[:, 1:]
    n = inputs.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    x = parts["stack"](parts["embed"](inputs), mask)
    log_p = parts["head"](x - x.mean(1, keepdim=True)).log_softmax(-1)
    losses = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return losses[labels != pad_id].mean()


@misconception(
    "honest-loss",
    id="LM56",
    fails=["honest-loss-values"],
    read="12_language_model#lm-leaks",
)
def softmax_over_places(ids, parts, pad_id):
    """Your softmax runs over the places of a row; a distribution is over the vocabulary."""
    inputs, labels = ids[:, :-1], ids[:, 1:]
    n = inputs.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    x = parts["stack"](parts["embed"](inputs), mask)
    log_p = parts["head"](x).log_softmax(1)
    losses = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return losses[labels != pad_id].mean()


@misconception(
    "honest-loss",
    id="LM57",
    fails=["honest-loss-values"],
    read="12_language_model#lm-leaks",
)
def padding_in_the_mean(ids, parts, pad_id):
    """Padding counts in your mean."""
    inputs, labels = ids[:, :-1], ids[:, 1:]
    n = inputs.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    x = parts["stack"](parts["embed"](inputs), mask)
    log_p = parts["head"](x).log_softmax(-1)
    losses = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return losses.mean()


@misconception(
    "honest-loss",
    id="LM58",
    fails=["honest-loss-values"],
    read="12_language_model#lm-leaks",
)
def divided_by_all_places(ids, parts, pad_id):
    """You leave the losses of padding out, and divide by all places all the same."""
    inputs, labels = ids[:, :-1], ids[:, 1:]
    n = inputs.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    x = parts["stack"](parts["embed"](inputs), mask)
    log_p = parts["head"](x).log_softmax(-1)
    losses = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return (losses * (labels != pad_id)).sum() / labels.numel()


@misconception(
    "honest-loss",
    id="LM59",
    fails=["honest-loss-values"],
    read="12_language_model#lm-leaks",
)
def not_even_itself(ids, parts, pad_id):
    """Your mask hides each token from itself: a place should see the token that it stands on."""
    inputs, labels = ids[:, :-1], ids[:, 1:]
    n = inputs.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril(-1)
    mask[0, 0] = True
    x = parts["stack"](parts["embed"](inputs), mask)
    log_p = parts["head"](x).log_softmax(-1)
    losses = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return losses[labels != pad_id].mean()


# 12.8 Along a line


@misconception(
    "fit",
    id="LM60",
    fails=["fit-values"],
    read="12_language_model#lm-scaling",
)
def floor_left_in(sizes, losses, floor):
    """You draw the line through the losses themselves; above a floor, only what lies over it
    falls along a line.
    """
    if len(sizes) != len(losses) or len(set(sizes)) < 2:
        raise ValueError("as many losses as sizes, and two sizes at least")
    if min(losses) <= floor:
        raise ValueError("a loss is not above the floor")
    x = torch.tensor([math.log(size) for size in sizes]).double()
    y = torch.tensor([math.log(loss) for loss in losses]).double()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    level = y.mean() - slope * x.mean()
    return math.exp(level), -slope.item()


@misconception(
    "fit",
    id="LM61",
    fails=["fit-values"],
    read="12_language_model#lm-scaling",
)
def sign_of_the_slope(sizes, losses, floor):
    """Your alpha is the slope, which is negative; in the law it stands with a minus."""
    if len(sizes) != len(losses) or len(set(sizes)) < 2:
        raise ValueError("as many losses as sizes, and two sizes at least")
    if min(losses) <= floor:
        raise ValueError("a loss is not above the floor")
    x = torch.tensor([math.log(size) for size in sizes]).double()
    y = torch.tensor([math.log(loss - floor) for loss in losses]).double()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    level = y.mean() - slope * x.mean()
    return math.exp(level), slope.item()


@misconception(
    "fit",
    id="LM62",
    fails=["fit-values"],
    read="12_language_model#lm-scaling",
)
def level_for_a(sizes, losses, floor):
    """Your a is the height of the line, a logarithm; the law has e to the power of it."""
    if len(sizes) != len(losses) or len(set(sizes)) < 2:
        raise ValueError("as many losses as sizes, and two sizes at least")
    if min(losses) <= floor:
        raise ValueError("a loss is not above the floor")
    x = torch.tensor([math.log(size) for size in sizes]).double()
    y = torch.tensor([math.log(loss - floor) for loss in losses]).double()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    level = y.mean() - slope * x.mean()
    return level.item(), -slope.item()


@misconception(
    "fit",
    id="LM63",
    fails=["fit-values"],
    read="12_language_model#lm-scaling",
)
def through_the_ends(sizes, losses, floor):
    """Your line goes through the smallest and the largest size; least squares hears all points."""
    if len(sizes) != len(losses) or len(set(sizes)) < 2:
        raise ValueError("as many losses as sizes, and two sizes at least")
    if min(losses) <= floor:
        raise ValueError("a loss is not above the floor")
    points = sorted(zip(sizes, losses, strict=True))
    (one, first), (other, last) = points[0], points[-1]
    alpha = math.log((first - floor) / (last - floor)) / math.log(other / one)
    return (first - floor) * one**alpha, alpha


@misconception(
    "fit",
    id="LM64",
    fails=["fit-values"],
    read="12_language_model#lm-scaling",
)
def nothing_refused(sizes, losses, floor):
    """A loss at the floor has no logarithm: raise a ValueError in words."""
    x = torch.tensor([math.log(size) for size in sizes]).double()
    y = torch.tensor([math.log(max(loss - floor, 1e-12)) for loss in losses]).double()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    level = y.mean() - slope * x.mean()
    return math.exp(level), -slope.item()


@misconception(
    "measured-sizes",
    id="LM65",
    fails=["measured-sizes-consistent"],
    read="12_language_model#lm-scaling",
)
def two_sizes():
    """Your table has two sizes; any two points lie on a line. Take six."""
    return {532: 2.323, 31728: 1.532}, 0.483


@misconception(
    "measured-sizes",
    id="LM66",
    fails=["measured-sizes-consistent"],
    read="12_language_model#lm-scaling",
)
def slope_for_alpha():
    """Your alpha is negative: the loss would grow with the model."""
    return {
        532: 2.323,
        1448: 1.863,
        2748: 1.819,
        4432: 1.754,
        8952: 1.713,
        15008: 1.607,
        31728: 1.532,
    }, -0.435


@misconception(
    "measured-sizes",
    id="LM67",
    fails=["measured-sizes-consistent"],
    read="12_language_model#lm-scaling",
)
def above_the_floor_already():
    """Your table holds what lies above the floor; it should hold the losses."""
    return {
        532: 0.92,
        1448: 0.46,
        2748: 0.416,
        4432: 0.351,
        8952: 0.31,
        15008: 0.204,
        31728: 0.129,
    }, 0.435


@misconception(
    "measured-sizes",
    id="LM68",
    fails=["measured-sizes-consistent"],
    read="12_language_model#lm-scaling",
)
def alpha_of_the_losses():
    """Your alpha is that of the losses themselves; take the floor off before you draw the line."""
    return {
        532: 2.323,
        1448: 1.863,
        2748: 1.819,
        4432: 1.754,
        8952: 1.713,
        15008: 1.607,
        31728: 1.532,
    }, 0.092


@misconception(
    "measured-sizes",
    id="LM69",
    fails=["measured-sizes-consistent"],
    read="12_language_model#lm-scaling",
)
def widths_for_sizes():
    """The sizes of your table are widths; a model has many more parameters than it is wide."""
    return {4: 2.323, 8: 1.863, 12: 1.819, 16: 1.754, 24: 1.713, 32: 1.607, 48: 1.532}, 0.71


# 12.10 Bonus: the best reader


@misconception(
    "best-losses",
    id="LM70",
    fails=["best-losses-two-states", "best-losses-text"],
    read="12_language_model#lm-floor",
)
def belief_not_normalised(ids, chances, following, belief):
    """You do not divide the belief by its sum: from the second token on your losses are those of
    all tokens so far together.
    """
    beliefs, losses = belief.expand(len(ids), -1), []
    for tokens in ids.T:
        weights = beliefs * chances[:, tokens].T
        total = weights.sum(1, keepdim=True)
        losses.append(-total.squeeze(1).log())
        beliefs = torch.zeros_like(weights).scatter_add(1, following[:, tokens].T, weights)
    return torch.stack(losses, dim=1)


@misconception(
    "best-losses",
    id="LM71",
    fails=["best-losses-two-states", "best-losses-text"],
    read="12_language_model#lm-floor",
)
def belief_never_changes(ids, chances, following, belief):
    """Your belief stays what it was in front of the row; each token says something about the
    state.
    """
    beliefs, losses = belief.expand(len(ids), -1), []
    for tokens in ids.T:
        weights = beliefs * chances[:, tokens].T
        total = weights.sum(1, keepdim=True)
        losses.append(-total.squeeze(1).log())
        beliefs = belief.expand(len(ids), -1)
    return torch.stack(losses, dim=1)


@misconception(
    "best-losses",
    id="LM72",
    fails=["best-losses-two-states", "best-losses-text"],
    read="12_language_model#lm-floor",
)
def states_stay_where_they_are(ids, chances, following, belief):
    """Your belief is weighed by the token, and stays on its states; each moves on to the state
    that follows.
    """
    beliefs, losses = belief.expand(len(ids), -1), []
    for tokens in ids.T:
        weights = beliefs * chances[:, tokens].T
        total = weights.sum(1, keepdim=True)
        losses.append(-total.squeeze(1).log())
        beliefs = weights / total
    return torch.stack(losses, dim=1)


@misconception(
    "best-losses",
    id="LM73",
    fails=["best-losses-text"],
    read="12_language_model#lm-floor",
)
def the_last_one_wins(ids, chances, following, belief):
    """Where two states lead to the same one, yours keeps one of them; their probabilities add
    up.
    """
    beliefs, losses = belief.expand(len(ids), -1), []
    for tokens in ids.T:
        weights = beliefs * chances[:, tokens].T
        total = weights.sum(1, keepdim=True)
        losses.append(-total.squeeze(1).log())
        beliefs = torch.zeros_like(weights).scatter(1, following[:, tokens].T, weights / total)
    return torch.stack(losses, dim=1)


@misconception(
    "best-losses",
    id="LM74",
    fails=["best-losses-two-states", "best-losses-text"],
    read="12_language_model#lm-floor",
)
def moved_without_evidence(ids, chances, following, belief):
    """You move the belief on without weighing it by the token: states that hardly ever write it
    should lose.
    """
    beliefs, losses = belief.expand(len(ids), -1), []
    for tokens in ids.T:
        weights = beliefs * chances[:, tokens].T
        total = weights.sum(1, keepdim=True)
        losses.append(-total.squeeze(1).log())
        beliefs = torch.zeros_like(weights).scatter_add(
            1, following[:, tokens].T, beliefs.contiguous()
        )
    return torch.stack(losses, dim=1)


@misconception(
    "best-losses",
    id="LM75",
    fails=["best-losses-two-states", "best-losses-text"],
    read="12_language_model#lm-floor",
)
def likeliest_state_only(ids, chances, following, belief):
    """You go on with the likeliest state alone; a reader who is not sure believes in several."""
    beliefs, losses = belief.expand(len(ids), -1), []
    for tokens in ids.T:
        weights = beliefs * chances[:, tokens].T
        total = weights.sum(1, keepdim=True)
        losses.append(-total.squeeze(1).log())
        best = F.one_hot(weights.argmax(1), weights.shape[1]).to(weights.dtype)
        beliefs = torch.zeros_like(weights).scatter_add(1, following[:, tokens].T, best)
    return torch.stack(losses, dim=1)
