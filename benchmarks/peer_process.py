"""One model of the benchmark in a process of its own: it is checked, and works in timed rounds.

`python -m benchmarks training` starts one process for each model
(`python -m benchmarks.peer_process`), because settings of the memory allocator hold for a whole
process, and lets them work in turns. They talk in lines of JSON: a task comes in ("start",
"round", "profile"), an answer goes out.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from benchmarks.peers import (
    BOS,
    EOS,
    PAD,
    Job,
    Missing,
    Peer,
    make_peer,
)
from lab.batching import pad_ids
from trainer.configs import ModelConfig
from trainer.fused.adoption import FAILURES
from trainer.fused.loss import hidden_states, token_loss
from trainer.fused.process import prepare_process
from trainer.fused.products import linear
from trainer.stepping import way

RATE = 1e-4
SMOOTHING = 0.1
WARM_UP = 2  # batches
SANE = 2.5  # a first loss is log(vocabulary) plus at most this


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
        self.said = prepare_process(job.threads) if job.trainers else ()
        torch.set_num_threads(job.threads)
        if job.onednn:
            # the only switch there is; it permits oneDNN to round factors where that is faster
            cast(Any, torch.backends).mkldnn.matmul.fp32_precision = "bf16"
        self.peer: Any = make_peer(job)
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
        self.hidden: Callable[..., Tensor] = hidden_states
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
                total, count = token_loss(self.peer.model, hidden, labels, PAD, SMOOTHING)
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
                linear(x, w)
                linear(g, w.t())
                linear(x.t(), g.t())
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
