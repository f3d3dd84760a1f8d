"""The Transformer that the exercises build, in one module.

A generated file: each part is a copy of the answer in its chapter's notebook, in the
book's order. To change a part, change the notebook, then make this file again:

    python -m lab assemble build/source --out solutions/transformer.py
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

# Chapter 1: Tokens and embedding ------------------------------------------------------------------


class TokenEmbedding(nn.Module):
    """Look up one learned vector per id, times sqrt(d_model) (Vaswani et al., section 3.4)."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        """Make `weight` (vocab_size, d_model), normal with standard deviation d_model**-0.5."""
        super().__init__()
        self.d_model = d_model
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))

    def forward(self, ids: Int[Tensor, "B N"]) -> Float[Tensor, "B N d_model"]:
        """Return the scaled vectors of these ids, shape (B, N, d_model)."""
        return self.weight[ids] * math.sqrt(self.d_model)


# Chapter 2: Positional encoding -------------------------------------------------------------------


def sinusoidal_encoding(
    num_positions: int,
    d_model: int,
    base: float = 10000.0,
    *,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "num_positions d_model"]:
    """Return the table of sinusoids, one row a position (Vaswani et al., 2017, section 3.5).

    Args:
        num_positions: number of rows, for the positions 0 .. num_positions - 1.
        d_model: number of columns; even columns hold sines, odd ones the cosines of the same angle.
        base: the longest wavelength is 2 * pi * base, divided by base ** (2 / d_model).
        dtype: floating-point type of the table.

    Raises:
        ValueError: if d_model is odd.
    """
    if d_model % 2 != 0:
        raise ValueError(f"d_model ({d_model}) must be even: each sine is paired with a cosine")
    position = torch.arange(num_positions, dtype=dtype)[:, None]  # (n, 1)
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=dtype) / d_model)  # (d_model / 2,)
    angle = position * frequency  # (n, d_model / 2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)  # (n, d_model)


class PositionalEncoding(nn.Module):
    """Add a fixed table of positions to embeddings, then drop (Vaswani et al., 2017, 3.5 and 5.4).

    Args:
        encoding: the table, (max_len, d_model); row p is added to the token at position p.
        dropout: probability of dropping an entry of the sum.
    """

    encoding: Tensor

    def __init__(self, encoding: Float[Tensor, "max_len d_model"], dropout: float = 0.0) -> None:
        super().__init__()
        # not persistent: the table can be computed again, and a checkpoint should not fix max_len
        self.register_buffer("encoding", encoding, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch n d_model"], offset: int = 0
    ) -> Float[Tensor, "batch n d_model"]:
        """Return dropout(x + rows offset .. offset + n - 1 of the table).

        Raises:
            ValueError: if offset + n is greater than max_len.
        """
        end = offset + x.shape[1]
        if end > len(self.encoding):
            raise ValueError(
                f"offset + n ({end}) must not exceed max_len ({len(self.encoding)}), "
                "the number of rows of the table"
            )
        return self.dropout(x + self.encoding[offset:end])  # (B, n, d) + (n, d)


# Chapter 3: Attention -----------------------------------------------------------------------------


def scaled_dot_product_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... m d_k"],
    v: Float[Tensor, "... m d_v"],
    mask: Bool[Tensor, "... #n m"] | None = None,  # True = may attend
) -> tuple[Float[Tensor, "... n d_v"], Float[Tensor, "... n m"]]:
    """Attend from n queries to m keys (Vaswani et al. 2017, section 3.2.1).

    Returns the output and the weights; both are finite for a query that may see no key.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., n, m)
    if mask is not None:
        # departs: hidden scores get the lowest finite number, not minus infinity, which would
        # give NaN for a query that may see no key. paper: test_minus_infinity_hides_as_well
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)  # (..., n, m), over the keys
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # matters only for a row without visible keys
    return weights @ v, weights  # (..., n, d_v), (..., n, m)


def causal_mask(n: int) -> Bool[Tensor, "n n"]:
    """Let each of n positions attend to itself and to those before it (True = may attend)."""
    return torch.ones(n, n, dtype=torch.bool).tril()


def padding_mask(ids: Int[Tensor, "B N"], pad_id: int) -> Bool[Tensor, "B 1 N"]:
    """Let every position attend to real tokens only (True = may attend); the 1 is the queries'."""
    return (ids != pad_id).unsqueeze(1)


# Chapter 4: Multi-head attention ------------------------------------------------------------------


class MultiHeadAttention(nn.Module):
    """Attend with several heads at once (Vaswani et al. 2017, section 3.2.2).

    Args:
        d_model: width of queries, keys, values and output.
        num_heads: number of heads; each has width d_k = d_model / num_heads.

    Raises:
        ValueError: if `d_model` is not divisible by `num_heads`.
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model ({d_model}) must be divisible by num_heads ({num_heads})")
        self.num_heads = num_heads
        # no biases, as in the paper; the columns of all heads lie side by side in each matrix
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)

    def split(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B H n d_k"]:
        """Give head 0 the first d_k columns of every token, head 1 the next d_k, and so on."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (B, n, H, d_k) on the way

    def merge(self, x: Float[Tensor, "B H n d_k"]) -> Float[Tensor, "B n d_model"]:
        """Put the heads side by side again."""
        return x.transpose(1, 2).flatten(-2)  # (B, n, H, d_k) on the way

    def forward(
        self,
        query: Float[Tensor, "B n d_model"],
        key: Float[Tensor, "B m d_model"],
        value: Float[Tensor, "B m d_model"],
        mask: Bool[Tensor, "... #n m"] | None = None,  # True = may attend
    ) -> tuple[Float[Tensor, "B n d_model"], Float[Tensor, "B H n m"]]:
        """Attend from n queries to m keys; return the output and the weights of every head."""
        q = self.split(self.w_q(query))  # (B, H, n, d_k)
        k = self.split(self.w_k(key))  # (B, H, m, d_k)
        v = self.split(self.w_v(value))  # (B, H, m, d_k)
        if mask is not None:
            mask = mask.unsqueeze(-3)  # (..., 1, n, m): the same for every head
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        return self.w_o(self.merge(heads)), weights


# Chapter 5: Residuals, LayerNorm and the feed-forward network -------------------------------------


class LayerNorm(nn.Module):
    """Normalise each token over its features, then scale and shift (Ba et al. 2016, section 3).

    Attributes:
        gain: (d_model,) scale of each feature, a parameter, 1 at the start.
        bias: (d_model,) level of each feature, a parameter, 0 at the start.
        eps: added to the variance, inside the root.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        """Make the two parameters."""
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Return x with every token normalised, scaled and shifted; the same shape."""
        centred = x - x.mean(-1, keepdim=True)  # (..., d_model)
        variance = centred.square().mean(-1, keepdim=True)  # (..., 1), divided by d_model
        # departs: the two papers print no epsilon; without it a token whose features are all
        # equal gives 0 / 0. paper: test_layer_norm_without_epsilon
        return self.gain * centred / torch.sqrt(variance + self.eps) + self.bias


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between, for every token alone (Vaswani et al., section 3.3).

    Attributes:
        inner: nn.Linear from d_model to d_ff, with a bias.
        outer: nn.Linear from d_ff to d_model, with a bias.
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        """Make the two linear maps."""
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Return the network's output for every token; the same shape."""
        hidden = torch.relu(self.inner(x))  # (..., d_ff)
        return self.outer(hidden)  # (..., d_model)


# Chapter 6: Encoder -------------------------------------------------------------------------------


class EncoderLayer(nn.Module):
    """One layer of the encoder: self-attention, then a feed-forward network.

    Args:
        d_model: width of the tokens.
        num_heads: number of attention heads.
        d_ff: width inside the feed-forward network.
        dropout: probability of dropping an entry of what a sub-layer returns.
        norm_first: normalise before each sub-layer (pre-norm) in place of after the sum.

    Source: Vaswani et al. (2017), sections 3.1 and 5.4.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        # departs: the paper normalises after each sum only; the other order is here as a choice,
        # because most later models use it. paper: test_encoder_layers_normalise_after_each_sum
        self.norm_first = norm_first

    def forward(
        self,
        x: Float[Tensor, "B N d_model"],
        mask: Bool[Tensor, "... #N N"] | None = None,  # True = may attend
    ) -> Float[Tensor, "B N d_model"]:
        """Return the tokens, each informed by those that it may attend to."""
        if self.norm_first:
            normed = self.norm1(x)
            x = x + self.dropout(self.self_attention(normed, normed, normed, mask)[0])
            return x + self.dropout(self.feed_forward(self.norm2(x)))
        x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
        return self.norm2(x + self.dropout(self.feed_forward(x)))


class Encoder(nn.Module):
    """A stack of encoder layers.

    Args:
        make_layer: called once per layer; makes a new layer, to be called as layer(x, mask).
        num_layers: how many layers.
        norm: comes once after the last layer, if there is one; pre-norm stacks need it.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self, make_layer: Callable[[], nn.Module], num_layers: int, norm: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(make_layer() for _ in range(num_layers))
        self.norm = norm

    def forward(
        self,
        x: Float[Tensor, "B N d_model"],
        mask: Bool[Tensor, "... #N N"] | None = None,  # True = may attend
    ) -> Float[Tensor, "B N d_model"]:
        """Pass the tokens through all layers, and through the norm if there is one."""
        for layer in self.layers:
            x = layer(x, mask)
        return x if self.norm is None else self.norm(x)


# Chapter 7: Decoder -------------------------------------------------------------------------------


class DecoderLayer(nn.Module):
    """One layer of the decoder: masked self-attention, cross-attention, feed-forward.

    Args:
        d_model: width of the tokens, and of `memory`.
        num_heads: number of heads of either attention.
        d_ff: width inside the feed-forward network.
        dropout: probability of dropping an entry of what a sub-layer returns.
        norm_first: normalise before each sub-layer (pre-norm) in place of after the sum.

    Source: Vaswani et al. (2017), sections 3.1 and 5.4.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        norm_first: bool = False,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.norm3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        # departs: the paper normalises after each sum only; the other order is here as a choice,
        # because most later models use it. paper: test_decoder_layers_normalise_after_each_sum
        self.norm_first = norm_first

    def forward(
        self,
        x: Float[Tensor, "B N d_model"],
        memory: Float[Tensor, "B M d_model"],
        target_mask: Bool[Tensor, "... #N N"] | None = None,  # True = may attend
        memory_mask: Bool[Tensor, "... #N M"] | None = None,  # True = may attend
    ) -> Float[Tensor, "B N d_model"]:
        """Return the target's tokens, informed by their past and by the whole source."""
        if self.norm_first:
            own = self.norm1(x)
            x = x + self.dropout(self.self_attention(own, own, own, target_mask)[0])
            asked = self.norm2(x)
            x = x + self.dropout(self.cross_attention(asked, memory, memory, memory_mask)[0])
            return x + self.dropout(self.feed_forward(self.norm3(x)))
        x = self.norm1(x + self.dropout(self.self_attention(x, x, x, target_mask)[0]))
        x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
        return self.norm3(x + self.dropout(self.feed_forward(x)))


class Decoder(nn.Module):
    """A stack of decoder layers, all of which attend to the same memory.

    Args:
        make_layer: called once for every layer.
        num_layers: how many.
        norm: applied after the last layer; None for post-norm layers.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self, make_layer: Callable[[], nn.Module], num_layers: int, norm: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(make_layer() for _ in range(num_layers))
        self.norm = norm

    def forward(
        self,
        x: Float[Tensor, "B N d_model"],
        memory: Float[Tensor, "B M d_model"],
        target_mask: Bool[Tensor, "... #N N"] | None = None,  # True = may attend
        memory_mask: Bool[Tensor, "... #N M"] | None = None,  # True = may attend
    ) -> Float[Tensor, "B N d_model"]:
        """Pass the target through all layers, then through the norm, if there is one."""
        for layer in self.layers:
            x = layer(x, memory, target_mask, memory_mask)
        return x if self.norm is None else self.norm(x)


class Generator(nn.Module):
    """The output layer: logits over the vocabulary, without a bias.

    Args:
        d_model: width of the tokens.
        vocab_size: number of tokens in the target's vocabulary.

    Source: Vaswani et al. (2017), section 3.4; tied as there.
    """

    def __init__(self, d_model: int, vocab_size: int) -> None:
        """Make `weight` (vocab_size, d_model)."""
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))

    def forward(self, x: Float[Tensor, "B N d_model"]) -> Float[Tensor, "B N vocab_size"]:
        """Return the logits."""
        return x @ self.weight.T

    def tie(self, weight: nn.Parameter) -> None:
        """Use this very Parameter from now on.

        Raises:
            ValueError: if its shape is not (vocab_size, d_model).
        """
        if weight.shape != self.weight.shape:
            raise ValueError(
                f"weight has shape {tuple(weight.shape)}; it must have the generator's, "
                f"(vocab_size, d_model) = {tuple(self.weight.shape)}"
            )
        self.weight = weight


# Chapter 8: Teacher forcing -----------------------------------------------------------------------


def teacher_forcing_pair(
    target: Int[Tensor, "B N"],
) -> tuple[Int[Tensor, "B N-1"], Int[Tensor, "B N-1"]]:
    """Return what the decoder reads and, beside each token, the one that it should say next.

    Source: Vaswani et al. (2017), section 3.1 ("offset by one position").

    Args:
        target: rows are `<bos>` ... `<eos>`, then padding.
    """
    return target[:, :-1], target[:, 1:]


def label_smoothed_loss(
    logits: Float[Tensor, "B N V"],
    labels: Int[Tensor, "B N"],
    pad_id: int,
    smoothing: float = 0.1,
) -> Float[Tensor, ""]:
    """Mean cross-entropy over the real tokens, against labels smoothed over all V classes.

    A batch without real tokens has loss 0.
    Source: Vaswani et al. (2017), section 5.4, after Szegedy et al. (2016), section 7.
    """
    log_p = F.log_softmax(logits, dim=-1)  # (B, N, V)
    of_label = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)  # (B, N)
    losses = -(1 - smoothing) * of_label - smoothing * log_p.mean(-1)  # (B, N)
    real = labels != pad_id
    return losses.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)


def learning_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    """The learning rate of this step: linear warm-up, then inverse square root.

    Source: Vaswani et al. (2017), section 5.3, equation 3.

    Raises:
        ValueError: if the step is below 1.
    """
    if step < 1:
        raise ValueError(f"step ({step}) must be at least 1")
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def scheduled_adam(
    parameters: Iterable[nn.Parameter], rate: Callable[[int], float]
) -> tuple[torch.optim.Adam, torch.optim.lr_scheduler.LambdaLR]:
    """Adam with the paper's settings, and a scheduler that gives update s the rate rate(s), s >= 1.

    Source: Vaswani et al. (2017), section 5.3.
    """
    optimizer = torch.optim.Adam(parameters, lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    # LambdaLR counts the updates that are done; the one that comes next is one further
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: rate(done + 1))
    return optimizer, scheduler


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Scale all gradients, in place, to a total norm of at most max_norm; return the norm before.

    Source: Pascanu et al. (2013), algorithm 1.
    """
    # departs: the paper reports no clipping; it is usual today. paper: test_training_unclipped
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    total = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
    if total > max_norm:
        for gradient in gradients:
            gradient.mul_(max_norm / total)
    return total


def train_step(
    model: nn.Module,
    source: Int[Tensor, "B M"],
    target: Int[Tensor, "B N"],
    optimizer: torch.optim.Optimizer,
    pad_id: int,
    loss_function: Callable[[Tensor, Tensor, int], Tensor],
    max_norm: float = 1.0,
) -> float:
    """Update the model once, on one batch, with teacher forcing; return the loss.

    Source: Vaswani et al. (2017), section 5.

    Args:
        model: called once, by position, as model(source, decoder_input); returns logits.
        source: what is translated.
        target: rows are `<bos>` ... `<eos>`, then padding.
        optimizer: holds the model's parameters.
        pad_id: handed on to the loss.
        loss_function: called as loss_function(logits, labels, pad_id).
        max_norm: the gradients' largest total norm.
    """
    model.train()
    optimizer.zero_grad()
    logits = model(source, target[:, :-1])  # (B, N - 1, V)
    loss = loss_function(logits, target[:, 1:], pad_id)
    loss.backward()
    # departs: the paper reports no clipping; it is usual today. paper: test_training_unclipped
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


# Chapter 9: Inference -----------------------------------------------------------------------------


def greedy_decode(
    model,  # an nn.Module with encode and decode
    source: Int[Tensor, "B M"],
    bos_id: int,
    eos_id: int,
    max_len: int,
) -> list[list[int]]:
    """Write each sentence by always choosing the likeliest token; at most max_len of them.

    Returns the ids without bos_id and eos_id.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        ids = torch.full((len(source), 1), bos_id, device=source.device)
        ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
        for _ in range(max_len):
            logits = model.decode(ids, memory, memory_mask)[:, -1]  # (B, V)
            chosen = logits.argmax(-1)  # (B,)
            ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
            ended |= chosen == eos_id
            if ended.all():
                break
    model.train(was_training)
    # rows that ended early went on beside the others; what they wrote since then does not count
    rows = ids[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


def beam_search(
    model,  # an nn.Module with encode and decode
    source: Int[Tensor, "1 M"],
    bos_id: int,
    eos_id: int,
    max_len: int,
    beam_size: int = 4,
    length_penalty: float = 0.6,
) -> tuple[list[int], float]:
    """Write one sentence, keeping the beam_size most probable hypotheses at each step.

    Returns the best finished one's ids, without bos_id and eos_id, and its score:
    log-probability / ((5 + n) / 6) ** length_penalty (Wu et al. 2016, section 7).
    """
    was_training = model.training
    model.eval()
    finished: list[tuple[float, list[int]]] = []  # score, ids
    with torch.no_grad():
        memory, memory_mask = model.encode(source)
        live = torch.full((1, 1), bos_id, device=source.device)  # (k, n + 1)
        log_probs = torch.zeros(1, device=source.device)  # (k,)
        penalty = 1.0
        for n in range(1, max_len + 1):
            penalty = ((5 + n) / 6) ** length_penalty
            k = len(live)
            repeated = memory.expand(k, -1, -1), memory_mask.expand(k, -1, -1)
            logits = model.decode(live, *repeated)[:, -1]  # (k, V)
            totals = log_probs.unsqueeze(1) + logits.log_softmax(-1)  # (k, V)
            log_probs, numbers = totals.flatten().topk(min(beam_size, totals.numel()))
            tokens = numbers % totals.shape[1]
            live = torch.cat([live[numbers // totals.shape[1]], tokens.unsqueeze(1)], dim=1)
            ended = tokens == eos_id
            for ids, log_prob in zip(live[ended].tolist(), log_probs[ended].tolist(), strict=True):
                finished.append((log_prob / penalty, ids[1:-1]))
            live, log_probs = live[~ended], log_probs[~ended]
            if not len(live):
                break
        if not finished:
            cut_off = zip(live.tolist(), log_probs.tolist(), strict=True)
            finished = [(log_prob / penalty, ids[1:]) for ids, log_prob in cut_off]
    model.train(was_training)
    score, ids = max(finished)
    return ids, score


class CachedAttention(MultiHeadAttention):
    """Attention that keeps projected keys and values between calls.

    Args:
        attention: the one whose place it takes; its weights are shared.
        grows: True for self-attention, where each call adds tokens; False for cross-attention,
            where the first call brings them all.
    """

    def __init__(self, attention: MultiHeadAttention, *, grows: bool) -> None:
        nn.Module.__init__(self)  # no new weights
        self.num_heads = attention.num_heads
        self.w_q, self.w_k = attention.w_q, attention.w_k
        self.w_v, self.w_o = attention.w_v, attention.w_o
        self.grows = grows
        self.reset()

    def reset(self) -> None:
        """Forget all keys and values: a new sentence begins."""
        self.kept: tuple[Tensor, Tensor] | None = None  # keys and values, (B, H, m, d_k) each

    def forward(
        self,
        query: Float[Tensor, "B n d_model"],
        key: Float[Tensor, "B m d_model"],
        value: Float[Tensor, "B m d_model"],
        mask: Bool[Tensor, "... #n m"] | None = None,  # True = may attend
    ) -> tuple[Float[Tensor, "B n d_model"], Float[Tensor, "B H n all_keys"]]:
        """Attend from the new tokens to all that is kept; return the output and the weights."""
        if self.kept is None or self.grows:
            new = self.split(self.w_k(key)), self.split(self.w_v(value))  # (B, H, m, d_k) each
            if self.kept is not None:
                if mask is not None:
                    # a column of True for each old key: nothing that was written is hidden
                    mask = F.pad(mask, (self.kept[0].shape[2], 0), value=True)
                new = (
                    torch.cat([self.kept[0], new[0]], dim=2),
                    torch.cat([self.kept[1], new[1]], dim=2),
                )
            self.kept = new
        heads = None if mask is None else mask.unsqueeze(-3)  # an axis for the heads
        q = self.split(self.w_q(query))  # (B, H, n, d_k)
        output, weights = scaled_dot_product_attention(q, *self.kept, heads)
        return self.w_o(self.merge(output)), weights


def use_cache(model: nn.Module) -> list[CachedAttention]:
    """Give every decoder layer of the model attentions with caches; return them, empty."""

    def cached(attention: MultiHeadAttention, grows: bool) -> CachedAttention:
        if not isinstance(attention, CachedAttention):
            return CachedAttention(attention, grows=grows)
        attention.reset()
        return attention

    caches = []
    for layer in list(model.modules()):  # a list, because the loop changes the model
        if isinstance(layer, DecoderLayer):
            layer.self_attention = cached(layer.self_attention, grows=True)
            layer.cross_attention = cached(layer.cross_attention, grows=False)
            caches += [layer.self_attention, layer.cross_attention]
    return caches


def bleu(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    max_order: int = 4,
) -> float:
    """BLEU of a corpus, from 0 to 100, with one reference each (Papineni et al. 2002).

    Raises ValueError if there are not as many references as hypotheses.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} hypotheses and {len(references)} references: there must be as many"
        )
    matches, totals = [0] * max_order, [0] * max_order
    for pair in zip(hypotheses, references, strict=True):
        for n in range(1, max_order + 1):
            written, wanted = (
                Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
                for tokens in pair
            )
            matches[n - 1] += sum(min(count, wanted[gram]) for gram, count in written.items())
            totals[n - 1] += sum(written.values())
    if not all(matches):
        return 0.0
    logs = [math.log(match / total) for match, total in zip(matches, totals, strict=True)]
    ratio = sum(map(len, references)) / sum(map(len, hypotheses))
    return 100 * math.exp(min(0.0, 1 - ratio) + sum(logs) / max_order)


# Chapter 10: The full model -----------------------------------------------------------------------


class Transformer(nn.Module):
    """The whole model: logits for the next target token at every place of the target.

    Args:
        source_vocab: number of ids of the source language.
        target_vocab: number of ids of the target language.
        encoding: table of positions, (max_len, d_model).
        d_model: width of the tokens.
        num_layers: layers of the encoder, and of the decoder.
        num_heads: heads of every attention.
        d_ff: width inside the feed-forward networks.
        dropout: probability of dropping an entry, in the layers and after adding positions.
        pad_id: id of padding, in both languages.
        norm_first: normalise before each sub-layer, and once more after each stack.
        tied: share the output's matrix with the target embedding, and with the source embedding
            where the vocabularies are one.

    Source: Vaswani et al. (2017), section 3.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        encoding: Float[Tensor, "max_len d_model"],
        d_model: int = 512,
        num_layers: int = 6,
        num_heads: int = 8,
        d_ff: int = 2048,
        dropout: float = 0.1,
        pad_id: int = 0,
        norm_first: bool = False,
        tied: bool = True,
    ) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.source_embedding = TokenEmbedding(source_vocab, d_model)
        self.target_embedding = TokenEmbedding(target_vocab, d_model)
        self.positional_encoding = PositionalEncoding(encoding, dropout)
        # departs: the paper knows post-norm only, which needs no norm at
        # the end of a stack. paper: test_post_norm_stacks_end_without_a_norm
        self.encoder = Encoder(
            lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first),
            num_layers,
            LayerNorm(d_model) if norm_first else None,
        )
        self.decoder = Decoder(
            lambda: DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first),
            num_layers,
            LayerNorm(d_model) if norm_first else None,
        )
        self.generator = Generator(d_model, target_vocab)
        if tied:
            # departs: the paper's two languages always share one vocabulary; ours need
            # not. paper: test_one_vocabulary_is_one_matrix
            if source_vocab == target_vocab:
                self.source_embedding.weight = self.target_embedding.weight
            self.generator.tie(self.target_embedding.weight)

    def encode(
        self, source: Int[Tensor, "B M"]
    ) -> tuple[Float[Tensor, "B M d_model"], Bool[Tensor, "B 1 M"]]:
        """Return the encoder's output, and where the source is no padding (True = may attend)."""
        memory_mask = padding_mask(source, self.pad_id)  # (B, 1, M)
        x = self.positional_encoding(self.source_embedding(source))  # (B, M, d_model)
        return self.encoder(x, memory_mask), memory_mask

    def decode(
        self,
        target: Int[Tensor, "B N"],
        memory: Float[Tensor, "B M d_model"],
        memory_mask: Bool[Tensor, "B 1 M"],
        offset: int = 0,  # position of the target's first column
    ) -> Float[Tensor, "B N target_vocab"]:
        """Return the logits: at each place of the target, for the token that comes next."""
        not_later = causal_mask(target.shape[1]).to(target.device)  # (N, N)
        target_mask = not_later & padding_mask(target, self.pad_id)  # (B, N, N)
        x = self.positional_encoding(self.target_embedding(target), offset)  # (B, N, d_model)
        return self.generator(self.decoder(x, memory, target_mask, memory_mask))

    def forward(
        self, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N target_vocab"]:
        """Return the logits; the target is the decoder's input as it is."""
        return self.decode(target, *self.encode(source))


def initialise(model: nn.Module) -> None:
    """Draw a model's first numbers in place: matrices Xavier uniform, embeddings normal.

    The paper is silent on this; Xavier's rule is Glorot and Bengio's (2010).
    """
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
    for module in model.modules():
        if isinstance(module, TokenEmbedding):  # last, because a generator may share the matrix
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)


def average_checkpoints(checkpoints: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return a new state dict: the mean of the checkpoints, oldest first.

    What is not floating-point comes from the last checkpoint.

    Raises:
        ValueError: if there is no checkpoint, or if two of them have different names.

    Source: Vaswani et al. (2017), section 6.1.
    """
    if not checkpoints:
        raise ValueError("there is no checkpoint to average")
    last = checkpoints[-1]
    for checkpoint in checkpoints:
        if checkpoint.keys() != last.keys():
            odd = sorted(checkpoint.keys() ^ last.keys())
            raise ValueError(f"checkpoints must have the same names; these are not in all: {odd}")
    return {
        name: torch.stack([checkpoint[name] for checkpoint in checkpoints]).mean(0)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in last.items()
    }


# Chapter 12: Language model -----------------------------------------------------------------------


class LanguageModel(nn.Module):
    """A decoder without a source: logits at every place for the token that comes next.

    Args:
        vocab_size: number of ids.
        encoding: table of positions, (max_len, d_model).
        num_layers: how many layers, all of them pre-norm.
        num_heads: heads of every attention.
        d_ff: width inside the feed-forward networks.
        dropout: probability of dropping an entry, in the layers and after adding positions.
    """

    def __init__(
        self,
        vocab_size: int,
        encoding: Float[Tensor, "max_len d_model"],
        num_layers: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        d_model = encoding.shape[1]
        self.embedding = TokenEmbedding(vocab_size, d_model)
        self.positional_encoding = PositionalEncoding(encoding, dropout)
        self.stack = Encoder(
            lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
            num_layers,
            LayerNorm(d_model),
        )
        self.generator = Generator(d_model, vocab_size)
        self.generator.tie(self.embedding.weight)

    def forward(self, ids: Int[Tensor, "B N"], offset: int = 0) -> Float[Tensor, "B N vocab_size"]:
        """Return the logits; the first column of ids stands at position `offset`."""
        x = self.positional_encoding(self.embedding(ids), offset)  # (B, N, d_model)
        x = self.stack(x, causal_mask(ids.shape[1]).to(ids.device))
        return self.generator(x)


# Chapter 13: Pictures -----------------------------------------------------------------------------


def patchify(pictures: Float[Tensor, "B C H W"], patch_size: int) -> Float[Tensor, "B N patch_dim"]:
    """Cut pictures into square patches, row by row; a patch is one row of numbers."""
    batch, channels, height, width = pictures.shape
    if patch_size < 1 or height % patch_size or width % patch_size:
        raise ValueError(f"patches of {patch_size} do not fill {height} x {width} pixels")
    rows, columns = height // patch_size, width // patch_size
    x = pictures.reshape(batch, channels, rows, patch_size, columns, patch_size)
    x = x.permute(0, 2, 4, 1, 3, 5)  # (B, rows, columns, C, p, p)
    return x.reshape(batch, rows * columns, channels * patch_size**2)


class PatchEncoder(nn.Module):
    """An encoder whose tokens are patches, with a class token in front.

    Args:
        patch_dim: numbers of a patch.
        num_patches: of a picture.
        d_model: width of the tokens.
        num_layers: how many layers, all of them pre-norm.
        num_heads: heads of every attention.
        d_ff: width inside the feed-forward networks.
        dropout: probability of dropping an entry, in the layers.
    """

    def __init__(
        self,
        patch_dim: int,
        num_patches: int,
        d_model: int,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.patch_embedding = nn.Linear(patch_dim, d_model)
        self.class_token = nn.Parameter(0.02 * torch.randn(d_model))
        self.positions = nn.Parameter(0.02 * torch.randn(1 + num_patches, d_model))
        self.stack = Encoder(
            lambda: EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
            num_layers,
            LayerNorm(d_model),
        )

    def forward(self, patches: Float[Tensor, "B N patch_dim"]) -> Float[Tensor, "B n d_model"]:
        """Return the vectors of the class token and of all patches."""
        x = self.patch_embedding(patches)  # (B, N, d_model)
        first = self.class_token.expand(len(x), 1, -1)  # (B, 1, d_model)
        return self.stack(torch.cat([first, x], dim=1) + self.positions)


class Captioner(nn.Module):
    """A decoder that reads the tokens of a picture; it is called like a translator.

    Args:
        encoder: turns patches into tokens, (B, M, d_model).
        vocab_size: number of ids.
        encoding: table of positions of the words, (max_len, d_model).
        num_layers: how many layers of the decoder, all of them pre-norm.
        num_heads: heads of every attention.
        d_ff: width inside the feed-forward networks.
        dropout: probability of dropping an entry.
    """

    def __init__(
        self,
        encoder: nn.Module,
        vocab_size: int,
        encoding: Float[Tensor, "max_len d_model"],
        num_layers: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        d_model = encoding.shape[1]
        self.encoder = encoder
        self.embedding = TokenEmbedding(vocab_size, d_model)
        self.positional_encoding = PositionalEncoding(encoding, dropout)
        self.decoder = Decoder(
            lambda: DecoderLayer(d_model, num_heads, d_ff, dropout, norm_first=True),
            num_layers,
            LayerNorm(d_model),
        )
        self.generator = Generator(d_model, vocab_size)
        self.generator.tie(self.embedding.weight)

    def encode(
        self, patches: Float[Tensor, "B N patch_dim"]
    ) -> tuple[Float[Tensor, "B M d_model"], Bool[Tensor, "B 1 M"]]:
        """Return the memory, and a mask that hides nothing of it."""
        memory = self.encoder(patches)
        seen = torch.ones(len(memory), 1, memory.shape[1], dtype=torch.bool, device=memory.device)
        return memory, seen

    def decode(
        self,
        ids: Int[Tensor, "B N"],
        memory: Float[Tensor, "B M d_model"],
        memory_mask: Bool[Tensor, "B 1 M"],
        offset: int = 0,
    ) -> Float[Tensor, "B N vocab_size"]:
        """Return the logits of the next word, after each of these."""
        x = self.positional_encoding(self.embedding(ids), offset)  # (B, N, d_model)
        mask = causal_mask(ids.shape[1]).to(ids.device)
        return self.generator(self.decoder(x, memory, mask, memory_mask))

    def forward(
        self, patches: Float[Tensor, "B N patch_dim"], ids: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N vocab_size"]:
        """Return the logits of the next word, after each of these, for each picture."""
        return self.decode(ids, *self.encode(patches))
