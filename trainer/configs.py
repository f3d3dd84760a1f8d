"""Configurations of model and training: small frozen dataclasses, the recipes by name, and JSON.

A configuration says everything that decides what a training computes, apart from the module, the
corpus and the machine.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

OPTIMISERS = ("adamw", "muon")
SCHEDULES = ("inverse-sqrt", "cosine")
PRECISIONS = ("fp32", "bf16")
FIRST_EMBEDDINGS = ("drawn", "cooccurrence")


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of the model, by the names of its constructor; `max_len` is the table's rows."""

    d_model: int
    num_layers: int  # of the encoder, and of the decoder
    num_heads: int
    d_ff: int
    dropout: float
    norm_first: bool
    max_len: int = 256  # ids in the longest sentence, <bos> and <eos> included

    def __post_init__(self) -> None:
        """Refuse sizes that no model can have."""
        for name in ("d_model", "num_layers", "num_heads", "d_ff"):
            _at_least(self, name, 1)
        _at_least(self, "max_len", 3)
        _share(self, "dropout")
        if self.d_model % self.num_heads:
            raise ValueError(
                f"d_model ({self.d_model}) must be divisible by num_heads ({self.num_heads})"
            )
        if self.d_model % 2:
            raise ValueError(f"d_model ({self.d_model}) must be even")


@dataclass(frozen=True)
class TrainConfig:
    """A recipe: how a model of these sizes is trained, and how it is decoded by default.

    The budget is either `steps` (updates) or `cpu_minutes` (processor time of the training loop);
    resuming after a kill is exact for the former only.
    """

    model: ModelConfig
    peak_rate: float  # the learning rate at the end of the warm-up
    steps: int | None = None
    cpu_minutes: float | None = None
    vocab_size: int = 4000  # at most; subwords of both languages, or of the source's alone
    target_vocab_size: int = 0  # at most; the target's own subwords; 0: both languages share theirs
    first_embeddings: str = "drawn"  # by the module; or learnt from which subwords meet in a pair
    max_tokens: int = 1024  # padded ids of a micro-batch, on either side
    accumulate: int = 1  # micro-batches an update, in every process
    optimiser: str = "adamw"
    betas: tuple[float, float] = (0.9, 0.98)  # of AdamW
    matrix_rate: float | None = None  # Muon's peak rate, for the matrices within the two stacks
    momentum: float = 0.95  # Muon's
    newton_schulz: int = 3  # Muon's iterations, 1 to 5
    weight_decay: float = 1e-4  # of matrices
    schedule: str = "cosine"
    warmup: int = 400  # updates
    warmup_share: float = 0.0  # of the budget, in place of so many updates; 0 for updates
    label_smoothing: float = 0.1
    clip: float = 1.0  # largest norm of the gradients; 0 to leave them as they are
    ema: float = 0.0  # decay of the moving average of the weights; 0 for none
    average: int = 1  # last checkpoints whose mean is decoded with, where there is no ema
    precision: str = "fp32"
    compile: bool = False
    threads: int | None = None  # of torch, on a CPU; None leaves their number to the machine
    multiple: int = 1  # lengths of a batch are padded to a multiple of this
    fused: bool = True  # faster parts stand in for the module's own, where both agree
    save_every: int = 500  # updates
    keep: int = 3  # last checkpoints that stay
    validate_every: int = 500  # updates; 0 for never
    bleu_sentences: int = 200  # of the validation set, translated at each validation; 0 for none
    beam_size: int = 5
    length_penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, by name."""
        if (self.steps is None) == (self.cpu_minutes is None):
            raise ValueError(
                f"give either steps ({self.steps}) or cpu_minutes ({self.cpu_minutes}), not both"
            )
        for name in ("steps", "cpu_minutes", "peak_rate", "matrix_rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} ({value}) must be above 0")
        ones = ("accumulate", "warmup", "average", "multiple", "save_every", "keep", "beam_size")
        for name in (*ones, "threads"):
            _at_least(self, name, 1)
        for name in ("validate_every", "bleu_sentences", "clip", "weight_decay", "seed"):
            _at_least(self, name, 0)
        _at_least(self, "max_tokens", self.model.max_len)
        _at_least(self, "vocab_size", 8)
        _at_least(self, "target_vocab_size", 8 if self.target_vocab_size else 0)
        _share(self, "label_smoothing")
        _share(self, "ema")
        _share(self, "warmup_share")
        _share(self, "momentum")
        if not 1 <= self.newton_schulz <= 5:
            raise ValueError(f"newton_schulz ({self.newton_schulz}) must be 1 to 5")
        _one_of(self, "optimiser", OPTIMISERS)
        _one_of(self, "schedule", SCHEDULES)
        _one_of(self, "precision", PRECISIONS)
        _one_of(self, "first_embeddings", FIRST_EMBEDDINGS)
        if (self.optimiser == "muon") != (self.matrix_rate is not None):
            raise ValueError(
                f"optimiser {self.optimiser!r} with matrix_rate {self.matrix_rate}: "
                "Muon needs one, AdamW has none"
            )
        if self.average > self.keep:
            raise ValueError(f"average ({self.average}) must be at most keep ({self.keep})")

    def with_fields(self, changes: Mapping[str, Any]) -> "TrainConfig":
        """The same with some fields changed, such as {"warmup": 800, "model.dropout": 0.2}.

        Raises:
            ValueError: that names the field that is unknown or of a wrong type.
        """
        content = self.to_json()
        for name, value in changes.items():
            group, _, inner = name.rpartition(".")
            (content[group] if group == "model" else content)[
                inner if group == "model" else name
            ] = value
        return TrainConfig.from_json(content)

    def to_json(self) -> dict[str, Any]:
        """All fields, as JSON can hold them."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> "TrainConfig":
        """The configuration with these fields.

        Raises:
            ValueError: that names the field that is unknown, missing or of a wrong type.
        """
        found = checked(cls, content, "the configuration")
        found["model"] = ModelConfig(**checked(ModelConfig, found["model"], "model"))
        return cls(**found)


def find_config(name: str) -> TrainConfig:
    """The recipe of this name, or the one in a JSON file of this path.

    Raises:
        ValueError: if it is neither, or the file holds no configuration.
    """
    if name in CONFIGS:
        return CONFIGS[name]
    path = Path(name)
    if path.suffix != ".json":
        raise ValueError(f"config {name} is none of {', '.join(CONFIGS)} and no .json file")
    if not path.is_file():
        raise ValueError(f"there is no file {path} for --config")
    try:
        return TrainConfig.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no JSON ({error})") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def settings(texts: Sequence[str]) -> dict[str, Any]:
    """What `--set FIELD=VALUE` says: a value as JSON has it; what is no JSON is a word.

    Raises:
        ValueError: if one has no sign of equality.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set {text} must be of the form FIELD=VALUE")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found


def differences(first: TrainConfig, second: TrainConfig) -> list[str]:
    """Where two configurations differ, such as "max_tokens is 1024, not 2048"."""
    one, other = _flat(first.to_json()), _flat(second.to_json())
    return [f"{name} is {one[name]}, not {other[name]}" for name in one if one[name] != other[name]]


def checked(kind: type, content: Any, what: str) -> dict[str, Any]:
    """The fields of a dataclass that `content` gives, each of its type.

    Args:
        kind: the dataclass.
        content: what was read, such as from JSON.
        what: its name, for a refusal.

    Raises:
        ValueError: that names the field that is unknown, missing or of a wrong type.
    """
    if not isinstance(content, Mapping):
        raise ValueError(f"{what} must be an object with named fields, not {content!r}")
    types = get_type_hints(kind)
    known = [field.name for field in fields(kind)]
    unknown = [name for name in content if name not in known]
    if unknown:
        raise ValueError(f"{what} has no field {unknown[0]}; its fields are {', '.join(known)}")
    required = [name for name in known if not hasattr(kind, name) and name not in content]
    if required:
        raise ValueError(f"{what} lacks {', '.join(required)}")
    return {name: _of_type(types[name], value, name) for name, value in content.items()}


# Helpers ------------------------------------------------------------------------------------------


def _flat(content: Mapping[str, Any]) -> dict[str, Any]:
    model = {f"model.{name}": value for name, value in content["model"].items()}
    rest = {name: value for name, value in content.items() if name != "model"}
    # through JSON, which knows no tuples: a configuration that was read equals the one written
    return json.loads(json.dumps(model | rest))


def _of_type(kind: Any, value: Any, name: str) -> Any:
    """The value as this type, whole numbers as floats where those are asked for."""
    if name == "betas":
        if isinstance(value, list | tuple) and len(value) == 2:
            return tuple(float(beta) for beta in value)
        raise ValueError(f"betas must be two numbers, not {value!r}")
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if kind is ModelConfig or (value is None and type(None) in kinds):
        return value
    if isinstance(value, bool) == (bool in kinds):
        if isinstance(value, kinds):
            return value
        if isinstance(value, int) and float in kinds:
            return float(value)
    names = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
    raise ValueError(f"{name} must be of type {names}, not {value!r}")


def _at_least(config: Any, name: str, least: float) -> None:
    value = getattr(config, name)
    if value is not None and not value >= least:
        raise ValueError(f"{name} ({value}) must be at least {least}")


def _share(config: Any, name: str) -> None:
    value = getattr(config, name)
    if not 0 <= value < 1:
        raise ValueError(f"{name} ({value}) must be at least 0 and below 1")


def _one_of(config: Any, name: str, choices: tuple[str, ...]) -> None:
    value = getattr(config, name)
    if value not in choices:
        raise ValueError(f"{name} {value!r} is not one of {', '.join(choices)}")


# Recipes ------------------------------------------------------------------------------------------

TWO_WIDE_LAYERS = ModelConfig(
    d_model=256, num_layers=2, num_heads=4, d_ff=512, dropout=0.15, norm_first=True
)
IN_MINUTES = TrainConfig(
    TWO_WIDE_LAYERS,
    cpu_minutes=10.0,
    vocab_size=8000,
    target_vocab_size=5000,
    first_embeddings="cooccurrence",
    max_tokens=2048,
    optimiser="muon",
    matrix_rate=0.01,
    peak_rate=5e-3,
    weight_decay=0.4,
    warmup_share=0.04,
    precision="bf16",
    threads=1,  # two would share the minutes, and do less in them
    length_penalty=2.0,  # chosen on the validation set, where 1 gives translations that are short
)

# Vaswani et al. 2017, table 3: 100,000 updates of about 25,000 tokens a side
BASE = TrainConfig(
    ModelConfig(d_model=512, num_layers=6, num_heads=8, d_ff=2048, dropout=0.1, norm_first=False),
    vocab_size=36_992,
    max_tokens=12_500,
    accumulate=2,
    peak_rate=(512 * 4000) ** -0.5,
    schedule="inverse-sqrt",
    warmup=4000,
    weight_decay=0.0,
    clip=0.0,
    steps=100_000,
    average=5,
    keep=5,
    save_every=1000,
    validate_every=2000,
    multiple=16,
    precision="bf16",
    compile=True,
    beam_size=4,
    length_penalty=0.6,
)

CONFIGS: Mapping[str, TrainConfig] = {
    # Wu et al. 2021 (arXiv 2105.14462) on Multi30k: fairseq's transformer_tiny, 2 GPUs with 4096
    # tokens each, mean of the last 10 epochs' checkpoints (an epoch is about 60 updates)
    "tiny": TrainConfig(
        ModelConfig(
            d_model=128, num_layers=4, num_heads=4, d_ff=256, dropout=0.3, norm_first=False
        ),
        vocab_size=9984,  # 10,000 merges there; ours a multiple of 64
        max_tokens=4096,
        accumulate=2,
        peak_rate=5e-3,
        schedule="inverse-sqrt",
        warmup=2000,
        weight_decay=0.0,
        clip=0.0,
        steps=8000,
        average=10,
        keep=10,
        save_every=60,
        multiple=8,
        precision="bf16",
    ),
    # Multi30k on a GPU, to be better than "tiny"; made ready without one and not measured
    "multi30k": TrainConfig(
        ModelConfig(d_model=256, num_layers=4, num_heads=4, d_ff=512, dropout=0.3, norm_first=True),
        vocab_size=9984,
        max_tokens=4096,
        optimiser="muon",
        matrix_rate=0.01,
        peak_rate=5e-3,
        newton_schulz=5,
        warmup_share=0.04,
        steps=6000,
        multiple=8,
        precision="bf16",
    ),
    # fairseq's recipe for IWSLT 2014, for corpora of some hundred thousand pairs
    "small": TrainConfig(
        ModelConfig(
            d_model=512, num_layers=6, num_heads=4, d_ff=1024, dropout=0.3, norm_first=True
        ),
        vocab_size=9984,
        max_tokens=4096,
        peak_rate=5e-4,
        schedule="inverse-sqrt",
        warmup=4000,
        steps=50_000,
        average=5,
        keep=5,
        save_every=1000,
        validate_every=1000,
        multiple=8,
        precision="bf16",
        compile=True,
    ),
    "base": BASE,
    "big": replace(
        BASE,
        model=ModelConfig(
            d_model=1024, num_layers=6, num_heads=16, d_ff=4096, dropout=0.3, norm_first=False
        ),
        max_tokens=6250,
        accumulate=4,
        peak_rate=(1024 * 4000) ** -0.5,
        steps=300_000,
        average=20,
        keep=20,
    ),
    # Multi30k in minutes of one core; chosen on the validation set
    "cpu10": IN_MINUTES,
    "cpu20": replace(IN_MINUTES, model=replace(TWO_WIDE_LAYERS, dropout=0.2), cpu_minutes=20.0),
    "cpu45": replace(IN_MINUTES, model=replace(TWO_WIDE_LAYERS, dropout=0.25), cpu_minutes=45.0),
}
