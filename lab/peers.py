"""One model of the benchmark in a process of its own: ours, or a library's of the same sizes.

`python -m lab bench` starts one process for each model (`python -m lab.peers`), because settings
of the memory allocator hold for a whole process, and lets them work in turns. They talk in lines
of JSON: a task comes in ("start", "round", "profile"), an answer goes out.
"""

import importlib.util
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lab import fused
from lab.batching import pad_ids
from lab.configs import ModelConfig
from lab.decoding import greedy, way
from lab.fused import FAILURES
from lab.training import load_module

PAD, BOS, EOS = 0, 2, 3  # ids of the benchmark's sentences
RATE = 1e-4
SMOOTHING = 0.1
MAX_LEN = 256  # positions; no sentence of the benchmark is longer
WARM_UP = 2  # batches
SANE = 2.5  # a first loss is log(vocabulary) plus at most this


@dataclass(frozen=True)
class Job:
    """What a process measures.

    Attributes:
        kind: "ours", "plain" (the module's model as it is), "torch", "x-transformers" or "marian".
        work: "train" or "decode".
        path: the module with our Transformer.
        model: the sizes, as `ModelConfig` has them.
        vocab: size of the one vocabulary.
        device: where.
        precision: "fp32", or "bf16" by autocast.
        compile: compile the model.
        threads: torch's on a CPU.
        onednn: whether the process sends all matrix products to oneDNN.
        trainers: whether ours has what our trainer sets up: the allocator, and an output layer on
            real tokens only.
        cache: whether decoding keeps keys and values.
        batches: for training pairs of sources and targets, for decoding one list of sources.
        steps: tokens to decode for each sentence.
    """

    kind: str
    work: str
    path: str
    model: dict[str, Any]
    vocab: int
    device: str
    precision: str
    compile: bool
    threads: int
    onednn: bool
    trainers: bool
    cache: bool
    batches: list[Any]
    steps: int


class Missing(ValueError):
    """A library that is not installed."""


# Models -------------------------------------------------------------------------------------------


class Peer(nn.Module):
    """A model of another library behind the interface that the benchmark calls."""

    library = ""

    def logits(
        self, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N V"]:
        """Logits of the next target tokens."""
        raise NotImplementedError

    def write(self, source: Int[Tensor, "B M"], steps: int) -> Int[Tensor, "B steps"]:
        """So many tokens for each sentence, chosen greedily with the library's cache."""
        raise NotImplementedError


class TorchPeer(Peer):
    """torch.nn.Transformer, with embeddings, positions and an output layer around it."""

    library = "torch.nn.Transformer"
    positions: Tensor

    def __init__(self, config: ModelConfig, vocab: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.scale = math.sqrt(config.d_model)
        self.register_buffer("positions", _sinusoids(MAX_LEN, config.d_model), persistent=False)
        self.dropout = nn.Dropout(config.dropout)
        with warnings.catch_warnings():
            # it warns that pre-norm has no fast path for padding, which training never takes
            warnings.simplefilter("ignore")
            self.transformer = nn.Transformer(
                config.d_model,
                config.num_heads,
                config.num_layers,
                config.num_layers,
                config.d_ff,
                config.dropout,
                batch_first=True,
                norm_first=config.norm_first,
            )
        # in evaluation it would cut padding out by nested tensors, a prototype of torch's
        self.transformer.encoder.use_nested_tensor = False
        # it also drops attention weights and the feed-forward network's hidden numbers; to do the
        # work that the others do, it drops what they drop
        for part in self.transformer.modules():
            if isinstance(part, nn.MultiheadAttention):
                part.dropout = 0.0
            if isinstance(part, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                part.dropout = nn.Dropout(0.0)

    def _embed(self, ids: Int[Tensor, "B N"]) -> Float[Tensor, "B N d_model"]:
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.shape[1]])

    def logits(
        self, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N V"]:
        """Logits of the next target tokens."""
        n = target.shape[1]
        later = torch.ones(n, n, dtype=torch.bool, device=target.device).triu(1)
        hidden = self.transformer(
            self._embed(source),
            self._embed(target),
            tgt_mask=later,
            src_key_padding_mask=source == PAD,
            memory_key_padding_mask=source == PAD,
            tgt_is_causal=True,
        )
        return F.linear(hidden, self.embedding.weight)


class XPeer(Peer):
    """XTransformer of x-transformers, its output tied to the embedding by hand."""

    library = "x-transformers"

    def __init__(self, config: ModelConfig, vocab: int) -> None:
        super().__init__()
        library = _imported("x_transformers", "x-transformers")
        sides = {
            "num_tokens": vocab,
            "depth": config.num_layers,
            "heads": config.num_heads,
            "max_seq_len": MAX_LEN,
            "scaled_sinu_pos_emb": True,
            "emb_dropout": config.dropout,
            "attn_dim_head": config.d_model // config.num_heads,
            "attn_flash": True,
            "attn_sublayer_dropout": config.dropout,
            "ff_sublayer_dropout": config.dropout,
            "ff_mult": config.d_ff / config.d_model,
            "ff_custom_activation": nn.ReLU(),
            "pre_norm": config.norm_first,
        }
        both = {f"{side}_{name}": value for side in ("enc", "dec") for name, value in sides.items()}
        self.model = library.XTransformer(dim=config.d_model, tie_token_emb=True, **both)
        decoder = self.model.decoder.net
        nn.init.normal_(decoder.token_emb.emb.weight, std=config.d_model**-0.5)
        decoder.to_logits.weight = decoder.token_emb.emb.weight

    def logits(
        self, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N V"]:
        """Logits of the next target tokens."""
        real = source != PAD
        memory = self.model.encoder(source, mask=real, return_embeddings=True)
        return self.model.decoder.net(target, context=memory, context_mask=real)

    def write(self, source: Int[Tensor, "B M"], steps: int) -> Int[Tensor, "B steps"]:
        """So many tokens for each sentence."""
        start = torch.full((len(source), 1), BOS, device=source.device)
        return self.model.generate(source, start, steps, mask=source != PAD, temperature=0.0)


class MarianPeer(Peer):
    """MarianMTModel of transformers; always post-norm."""

    library = "MarianMT"

    def __init__(self, config: ModelConfig, vocab: int, device: str) -> None:
        super().__init__()
        library = _imported("transformers", "transformers")
        library.logging.set_verbosity_error()
        settings = library.MarianConfig(
            vocab_size=vocab,
            max_position_embeddings=MAX_LEN,
            d_model=config.d_model,
            encoder_layers=config.num_layers,
            decoder_layers=config.num_layers,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            activation_function="relu",
            dropout=config.dropout,
            init_std=config.d_model**-0.5,
            scale_embedding=True,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            forced_eos_token_id=None,
            decoder_start_token_id=BOS,
            # the faster of its two on each device
            attn_implementation="eager" if device == "cpu" else "sdpa",
        )
        self.model = library.MarianMTModel(settings)

    def logits(
        self, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N V"]:
        """Logits of the next target tokens."""
        real = (source != PAD).long()
        return self.model(
            input_ids=source, attention_mask=real, decoder_input_ids=target, use_cache=False
        ).logits

    def write(self, source: Int[Tensor, "B M"], steps: int) -> Int[Tensor, "B steps"]:
        """So many tokens for each sentence."""
        return self.model.generate(
            input_ids=source,
            attention_mask=(source != PAD).long(),
            max_new_tokens=steps,
            min_new_tokens=steps,
            num_beams=1,
            do_sample=False,
        )[:, 1:]


class OwnPeer(Peer):
    """Our side: the module's own Transformer, with our drop-ins or as it is."""

    library = "ours"

    def __init__(self, job: Job, module: ModuleType) -> None:
        super().__init__()
        config = ModelConfig(**job.model)
        self.module, self.cache = module, job.cache
        self.model = module.Transformer(
            job.vocab,
            job.vocab,
            module.sinusoidal_encoding(MAX_LEN, config.d_model),
            d_model=config.d_model,
            num_layers=config.num_layers,
            num_heads=config.num_heads,
            d_ff=config.d_ff,
            dropout=config.dropout,
            pad_id=PAD,
            norm_first=config.norm_first,
        )
        module.initialise(self.model)
        self.model.to(job.device)
        self.drop_ins = fused.adopt(module, self.model) if job.kind == "ours" else ()

    def logits(
        self, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N V"]:
        """Logits of the next target tokens."""
        return self.model(source, target)

    def write(self, source: Int[Tensor, "B M"], steps: int) -> Int[Tensor, "B steps"]:
        """So many tokens for each sentence; no id ends one."""
        rows = greedy(self.module, self.model, source, BOS, -1, steps, cache=self.cache)
        return torch.tensor(rows, device=source.device)


def build(job: Job) -> Peer:
    """The model of a job, on its device.

    Raises:
        Missing: if its library is not installed.
        ValueError: if its module has no Transformer.
    """
    config = ModelConfig(**job.model)
    torch.manual_seed(0)
    if job.kind in ("ours", "plain"):
        return OwnPeer(job, load_module(Path(job.path)))
    if job.kind == "torch":
        return TorchPeer(config, job.vocab).to(job.device)
    if job.kind == "x-transformers":
        return XPeer(config, job.vocab).to(job.device)
    return MarianPeer(config, job.vocab, job.device.partition(":")[0]).to(job.device)


def _imported(name: str, package: str) -> Any:
    if importlib.util.find_spec(name) is None:
        raise Missing(f"{package} is not installed; pip install {package}")
    return importlib.import_module(name)


def _sinusoids(positions: int, d_model: int) -> Float[Tensor, "positions d_model"]:
    rates = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(positions)[:, None] * rates
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


# Sanity -------------------------------------------------------------------------------------------


def check(peer: Peer, vocab: int, device: str) -> None:
    """See that a model does the work: its logits obey the masks, its first loss is near log(V).

    Raises:
        ValueError: if not.
    """
    peer.eval()
    generator = torch.Generator().manual_seed(1)
    source, target = (
        torch.randint(EOS + 1, vocab, (8, length), generator=generator).to(device)
        for length in (9, 8)
    )
    with torch.no_grad():
        logits = peer.logits(source, target).float()
        if logits.shape != (8, 8, vocab):
            raise ValueError(f"{peer.library}: logits have the shape {tuple(logits.shape)}")
        longer = peer.logits(F.pad(source, (0, 3), value=PAD), target).float()
        changed = target.clone()
        changed[:, -1] = EOS
        earlier = peer.logits(source, changed).float()[:, :-1]
        labels = target.flip(0).flatten()  # not what the model reads: tied outputs favour that
        loss = F.cross_entropy(logits.flatten(0, 1), labels).item()
    size = logits.abs().max()
    for name, other, same in (
        ("padding of the source", longer, logits),
        ("a later token", earlier, logits[:, :-1]),
    ):
        if (other - same).abs().max() > 1e-3 * size:
            raise ValueError(f"{peer.library}: {name} changes its logits")
    if not abs(loss - math.log(vocab)) < SANE:
        raise ValueError(f"{peer.library}: the first loss is {loss:.2f}, far from log(V)")


def check_written(
    peer: Peer, source: Int[Tensor, "B M"], steps: int, written: Int[Tensor, "B steps"]
) -> None:
    """See that what a model wrote is what its own logits over the whole target say, but for ties.

    Raises:
        ValueError: if not.
    """
    if written.shape != (len(source), steps):
        raise ValueError(f"{peer.library}: it wrote a table of {tuple(written.shape)} tokens")
    start = torch.full((len(source), 1), BOS, device=source.device)
    with torch.no_grad():
        logits = peer.logits(source, torch.cat([start, written[:, :-1]], dim=1)).float()
    logits[..., [PAD, EOS]] = -float("inf")  # some libraries never write them
    best = logits.argmax(-1)
    same: Bool[Tensor, "B steps"] = (best == written) | (written == PAD) | (written == EOS)
    if same.float().mean() < 0.99:
        raise ValueError(f"{peer.library}: with its cache it writes what its logits do not say")


# Work ---------------------------------------------------------------------------------------------


class Worker:
    """A model at work: trains on the job's batches, or decodes its sentences, in timed rounds."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.device = torch.device(job.device)
        self.said = fused.prepare_process(job.threads) if job.trainers else ()
        torch.set_num_threads(job.threads)
        if job.onednn:
            # the only switch there is; it permits oneDNN to round factors where that is faster
            cast(Any, torch.backends).mkldnn.matmul.fp32_precision = "bf16"
        self.peer: Any = build(job)
        if job.kind not in ("ours", "plain") or job.work == "train":
            check(self.peer, job.vocab, job.device)
        self.peer.train(job.work == "train")
        self.tokens = 0
        if job.work == "train":
            self._start_training()
        else:
            self._start_decoding()

    def _start_training(self) -> None:
        self.batches = [
            tuple(pad_ids(side, PAD)[0].to(self.device) for side in batch)
            for batch in self.job.batches
        ]
        self.tokens = sum(int((target[:, 1:] != PAD).sum()) for _, target in self.batches)
        self.optimizer = torch.optim.AdamW(self.peer.parameters(), lr=RATE, fused=True)
        self.logits: Callable[[Tensor, Tensor], Tensor] = self.peer.logits
        self.hidden: Callable[..., Tensor] = fused.hidden_states
        if self.job.compile:
            self.logits = torch.compile(self.logits, dynamic=False)
            self.hidden = torch.compile(self.hidden, dynamic=False)
        self._epoch(self.batches if self.job.compile else self.batches[:WARM_UP])

    def _start_decoding(self) -> None:
        self.source = pad_ids(self.job.batches, PAD)[0].to(self.device)
        self.tokens = len(self.source) * self.job.steps
        if self.job.kind in ("ours", "plain") and self.job.cache:
            found = way(self.peer.module, self.peer.model)
            if not found.cached:
                raise ValueError(f"our model decodes without a cache: {found.reason}")
        check_written(self.peer, self.source, self.job.steps, self._decode())

    def round(self) -> dict[str, float]:
        """Do the work once; return the seconds, the target tokens and the mean loss of training.

        On a CPU with one thread the seconds are the processor's, so that other programs on the
        machine count less; else they are the clock's.
        """
        self._wait()
        start, loss = self._now(), 0.0
        if self.job.work == "train":
            loss = self._epoch(self.batches)
        else:
            self._decode()
        self._wait()
        return {"seconds": self._now() - start, "tokens": self.tokens, "loss": loss}

    def _now(self) -> float:
        alone = self.device.type == "cpu" and self.job.threads == 1
        return time.process_time() if alone else time.perf_counter()

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def _decode(self) -> Int[Tensor, "B steps"]:
        with torch.no_grad(), self._half():
            return self.peer.write(self.source, self.job.steps)

    def _half(self) -> torch.autocast:
        half = self.job.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=half)

    def _epoch(self, batches: list[Any]) -> float:
        losses = [self.step(source, target) for source, target in batches]
        return torch.stack(losses).mean().item()

    def step(self, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"]) -> Float[Tensor, ""]:
        """One update; returns the mean loss of the real tokens."""
        self.optimizer.zero_grad(set_to_none=True)
        inputs, labels = target[:, :-1], target[:, 1:]
        with self._half():
            if self.job.trainers:
                hidden = self.hidden(self.peer.model, source, inputs)
                total, count = fused.token_loss(self.peer.model, hidden, labels, PAD, SMOOTHING)
                loss = total / count
            else:
                logits = self.logits(source, inputs)
                loss = F.cross_entropy(
                    logits.flatten(0, 1).float(),
                    labels.flatten(),
                    ignore_index=PAD,
                    label_smoothing=SMOOTHING,
                )
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def profile(self) -> dict[str, Any]:
        """Where a round's time goes, by kind of operation, and the bare matrix products' time."""
        from torch.profiler import profile

        with profile() as found:
            for source, target in self.batches:
                self.step(source, target)
        times: dict[str, float] = {}
        for event in found.key_averages():
            own = event.self_device_time_total if self.device.type == "cuda" else None
            spent = event.self_cpu_time_total if own is None else own
            part = _part(event.key)
            times[part] = times.get(part, 0.0) + spent
        whole = sum(times.values())
        shares = {part: spent / whole for part, spent in times.items()}
        return {"shares": shares, "floor": self._bare_products()}

    def _bare_products(self) -> float:
        """Seconds that the matrix products of a round take alone."""
        config, seconds, seen = ModelConfig(**self.job.model), 0.0, {}
        for source, target in self.batches:
            real = int((target[:, 1:] != PAD).sum())
            places = source.numel(), target[:, 1:].numel(), real
            for rows, inner, outer, times in products(config, self.job.vocab, *places):
                key = rows, inner, outer
                if key not in seen:
                    seen[key] = self._product_seconds(*key)
                seconds += times * seen[key]
        return seconds

    def _product_seconds(self, rows: int, inner: int, outer: int) -> float:
        """Forwards, for the input and for the weights."""
        dtype = torch.bfloat16 if self.job.precision == "bf16" else torch.float32
        x, w, g = (
            torch.randn(shape, device=self.device, dtype=dtype)
            for shape in ((rows, inner), (outer, inner), (rows, outer))
        )
        best = math.inf
        for _ in range(5):
            self._wait()
            start = self._now()
            with torch.no_grad():
                fused.linear(x, w)
                fused.linear(g, w.t())
                fused.linear(x.t(), g.t())
            self._wait()
            best = min(best, self._now() - start)
        return best


def products(
    config: ModelConfig, vocab: int, source: int, target: int, labels: int
) -> Iterator[tuple[int, int, int, int]]:
    """The matrix products with weights of one forward pass: (rows, inner, outer, how often).

    Args:
        config: the sizes.
        vocab: size of the vocabulary.
        source: places of the source.
        target: places of the target.
        labels: places that the output layer sees.
    """
    d, ff, layers = config.d_model, config.d_ff, config.num_layers
    yield source, d, 3 * d, layers  # queries, keys and values of the encoder
    yield source, d, d, layers
    yield source, d, 2 * d, layers  # keys and values for the decoder
    yield target, d, 3 * d, layers
    yield target, d, d, 3 * layers  # both attentions' outputs, and the questions to the memory
    for places in (source, target):
        yield places, d, ff, layers
        yield places, ff, d, layers
    yield labels, d, vocab, 1


PARTS = (
    ("matrix products", ("linear_pointwise", "aten::mm", "addmm", "gemm", "_Linear", "cutlass")),
    ("attention", ("bmm", "_Attention", "attention", "baddbmm")),
    ("softmax and loss", ("softmax", "exp_", "nll", "cross_entropy", "amax", "_OutputLoss")),
    ("dropout", ("bernoulli", "random_", "dropout", "_Dropout")),
    ("layer norm", ("layer_norm",)),
    ("optimiser", ("adam", "Adam")),
    ("copies and zeros", ("copy_", "fill_", "zero", "cat", "empty", "contiguous")),
)


def _part(operation: str) -> str:
    for part, words in PARTS:
        if any(word in operation for word in words):
            return part
    return "all else"


# The process --------------------------------------------------------------------------------------


def main() -> None:
    """Answer tasks from standard input until it ends."""
    with _answers() as out:
        worker: Worker | None = None
        for line in sys.stdin:
            task = json.loads(line)
            try:
                if task["do"] == "start":
                    worker = Worker(Job(**task["job"]))
                    answer: dict[str, Any] = {
                        "parameters": sum(p.numel() for p in worker.peer.parameters()),
                        "set": worker.said,
                        "drop_ins": [
                            {"name": d.name, "used": d.used, "reason": d.reason}
                            for d in getattr(worker.peer, "drop_ins", ())
                        ],
                    }
                elif worker is None:
                    answer = {"error": "there is no job yet"}
                else:
                    answer = worker.profile() if task["do"] == "profile" else worker.round()
            except Missing as error:
                answer = {"error": str(error)}
            except FAILURES as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=out, flush=True)


@contextmanager
def _answers() -> Iterator[TextIO]:
    """The real standard output; what libraries print goes to standard error meanwhile."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        yield out


if __name__ == "__main__":
    main()
