"""The models of the benchmark: ours, and other libraries' of the same sizes."""

import importlib.util
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lab.assembled import load_module
from trainer.configs import ModelConfig
from trainer.decoding import greedy
from trainer.fused.adoption import adopt

PAD, BOS, EOS = 0, 2, 3  # ids of the benchmark's sentences
MAX_LEN = 256  # positions; no sentence of the benchmark is longer


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
        self.drop_ins = adopt(module, self.model) if job.kind == "ours" else ()

    def logits(
        self, source: Int[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N V"]:
        """Logits of the next target tokens."""
        return self.model(source, target)

    def write(self, source: Int[Tensor, "B M"], steps: int) -> Int[Tensor, "B steps"]:
        """So many tokens for each sentence; no id ends one."""
        rows = greedy(self.module, self.model, source, BOS, -1, steps, cache=self.cache)
        return torch.tensor(rows, device=source.device)


def make_peer(job: Job) -> Peer:
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
