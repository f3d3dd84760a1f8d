"""What a benchmark found: the tables that it prints, and the line that it records."""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.work import Setup, flops

PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}  # FLOP/s in bf16 without sparsity


@dataclass(frozen=True)
class Entry:
    """A row of a table: a model in its settings."""

    name: str
    kind: str
    note: str = ""
    ours: bool = False  # decides the ratio
    trainers: bool = False
    cache: bool = True


@dataclass
class Row:
    """What a model reached, in target tokens a second for each round."""

    entry: Entry
    rates: list[float] = field(default_factory=list)
    parameters: int = 0
    drop_ins: list[dict[str, Any]] = field(default_factory=list)
    loss: float = 0.0

    @property
    def rate(self) -> float:
        """The median."""
        return statistics.median(self.rates)

    def record(self) -> dict[str, Any]:
        """As a record keeps it."""
        return {
            "model": self.entry.name,
            "tokens_per_second": round(self.rate, 1),
            "low": round(min(self.rates), 1),
            "high": round(max(self.rates), 1),
            "rounds": len(self.rates),
            "parameters": self.parameters,
            "note": self.entry.note,
        }


def report(
    work: str,
    options: argparse.Namespace,
    setup: Setup,
    rows: list[Row],
    profiled: dict[str, Any] | None,
) -> float | None:
    """Print what was found and record it if wanted; the ratio of ours to the fastest peer.

    Args:
        work: "train" or "decode".
        options: the command's flags.
        setup: what all models shared.
        rows: what each model reached.
        profiled: where the time of ours went, if that was asked for.
    """
    peers = [row for row in rows if not row.entry.ours and row.entry.kind not in ("ours", "plain")]
    best = max(peers, key=lambda row: row.rate, default=None)
    by_name = {row.entry.name: row for row in rows}
    if work == "train":
        same, all_of_it = by_name["ours, same settings"], by_name["ours, all our trainer sets up"]
        plain = by_name["ours without drop-ins"]
        _table("(a) training, the same process settings for all", [same, plain, *peers], best)
        if not options.onednn and any(
            d["used"] and d["name"] == "linear maps" for d in same.drop_ins
        ):
            print(
                "torch's own matrix product does not use this processor's AVX-512; ours calls "
                "oneDNN's, which does (--onednn lets every model use it)"
            )
        _table("(b) training, ours as our trainer runs it", [all_of_it, *peers], best)
        mine = all_of_it
    else:
        title = f"greedy decoding, {len(setup.sources)} sentences, {setup.steps} tokens each"
        _table(title, rows, best)
        mine = by_name["ours, cached"]
    unused = [drop for drop in mine.drop_ins if not drop["used"]]
    for drop in unused:
        print(f"not used: {drop['name']}: {drop['reason']}")
    ratio = mine.rate / best.rate if best else None
    result = _record(work, setup, rows, ratio)
    if work == "train":
        result |= _utilisation(setup, mine)
        if profiled is not None:
            result |= _profile(setup, profiled, mine)
    if options.record is not None:
        from trainer.records import append

        append(options.record, result)
    return ratio


def _table(title: str, rows: Sequence[Row], best: Row | None) -> None:
    width = max(len(row.entry.name) for row in rows)
    print(f"\n{title}\n{'':<{width}}  tokens/s  (lowest-highest)    of the fastest peer")
    for row in sorted(rows, key=lambda row: -row.rate):
        span = f"({min(row.rates):,.0f}-{max(row.rates):,.0f})"
        share = f"{row.rate / best.rate:.2f}" if best else ""
        loss = f"  loss {row.loss:.2f}" if row.loss else ""
        print(f"{row.entry.name:<{width}}  {row.rate:>8,.0f}  {span:<18}  {share}{loss}")


def _record(work: str, setup: Setup, rows: Sequence[Row], ratio: float | None) -> dict[str, Any]:
    return {
        "what": "bench",
        "work": work,
        "device": setup.device.partition(":")[0],
        "precision": setup.precision,
        "setting": setup.sentence,
        "config": {
            "model": asdict(setup.model),
            "vocab_size": setup.vocab,
            "max_tokens": setup.max_tokens,
        },
        "rows": [row.record() for row in rows],
        "ratio": None if ratio is None else round(ratio, 3),
    }


def _utilisation(setup: Setup, mine: Row) -> dict[str, Any]:
    """What share of the GPU's peak our training reaches, where its peak is known."""
    tokens = sum(
        len([i for i in target if i]) - 1 for _, targets in setup.batches for target in targets
    )
    speed = flops(setup) / tokens * mine.rate
    print(f"\nours computes at {speed / 1e12:,.3g} TFLOP/s", end="")
    if not setup.device.startswith("cuda"):
        print()
        return {"flops_per_second": speed}
    import torch

    name = torch.cuda.get_device_name(setup.device)
    peak = next((peak for part, peak in PEAKS.items() if part in name), None)
    if peak is None or setup.precision != "bf16":
        print(f"; the peak of {name} in {setup.precision} is not known here")
        return {"flops_per_second": speed}
    print(f", {speed / peak:.1%} of the peak of {name} in bf16")
    return {"flops_per_second": speed, "mfu": speed / peak}


def _profile(setup: Setup, profiled: dict[str, Any], mine: Row) -> dict[str, Any]:
    """Where our time goes, and how fast the bare matrix products of the work would be."""
    shares = sorted(profiled["shares"].items(), key=lambda item: -item[1])
    print("\nwhere a step's time goes")
    for part, share in shares:
        print(f"{part:<18} {share:6.1%}")
    tokens = sum(
        len([i for i in target if i]) - 1 for _, targets in setup.batches for target in targets
    )
    floor = tokens / profiled["floor"]
    print(
        f"the floor: its matrix products with weights alone would allow {floor:,.0f} tokens/s; "
        f"ours reaches {mine.rate / floor:.0%} of that"
    )
    return {
        "profile": [{"part": part, "share": round(share, 4)} for part, share in shares],
        "floor_tokens_per_second": round(floor, 1),
    }
