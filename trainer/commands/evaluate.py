"""`python -m trainer evaluate`: BLEU of a trained run, with sacrebleu's signature."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainer.commands.decoder import Decoder, add_decoding

Pairs = Sequence[tuple[str, str]]


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "evaluate",
        help="BLEU of a trained run",
        description="Translate the corpus's tests, or another part of it, and score them. "
        "Tokenised, lower-cased text is scored as it stands (tokenize none, as papers score "
        "Multi30k), other text by sacrebleu's 13a.",
    )
    add_decoding(command)
    command.add_argument(
        "--split",
        action="append",
        metavar="NAME",
        help="such as valid or test_2016_flickr; may be given again (default all tests, or valid "
        "if there are none)",
    )
    command.add_argument(
        "--out-hypotheses",
        type=Path,
        metavar="FILE",
        help="write the translations, a line each (with several splits: FILE.SPLIT)",
    )
    command.add_argument(
        "--own",
        action="store_true",
        help="search and score by the module's own beam_search and bleu, for a look beside it",
    )
    command.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="append a line of JSON with all that was measured",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Score; the exit status."""
    from dataclasses import asdict

    from trainer import records
    from trainer.scoring import bleu

    for path in (options.record, options.out_hypotheses):
        if path is not None and not path.parent.is_dir():
            raise ValueError(f"there is no directory {path.parent} for {path.name}")
    if options.own and options.record is not None:
        raise ValueError("--record is for scores that carry a signature; leave out --own or it")
    decoder = Decoder(options)
    if options.own:
        return _own(decoder, options.split)
    corpus = decoder.run.corpus()
    splits = _splits({"valid": corpus.valid, **corpus.tests}, options.split)
    for note in (*decoder.run.notes, *corpus.notes):
        print(f"note         {note}")
    position = decoder.weights.position
    print(
        f"weights      {decoder.weights.what}, after {position.cpu_seconds / 60:.2f} minutes of "
        f"processor time, {position.seconds / 60:.2f} by the clock\n"
        f"decoding     beam {decoder.beam_size}, length penalty {decoder.length_penalty:g}"
    )
    scores = {}
    for name, pairs in splits.items():
        said = decoder.translate([source for source, _ in pairs], progress=sys.stderr.isatty())
        if options.out_hypotheses is not None:
            several = f".{name}" if len(splits) > 1 else ""
            path = options.out_hypotheses.with_name(options.out_hypotheses.name + several)
            path.write_text("".join(f"{line}\n" for line in said), encoding="utf-8")
        score = bleu(said, [target for _, target in pairs], tokenised=corpus.tokenised)
        scores[name] = {"sentences": len(pairs), **asdict(score)}
        print(
            f"{name:<12} BLEU {score.bleu:.2f} (brevity {score.brevity:.3f}) of {len(pairs):,} "
            f"sentences, {score.signature}"
        )
    if options.record is not None:
        records.append(options.record, {**_facts(decoder), "scores": scores})
    return 0


def _own(decoder: Decoder, names: Sequence[str] | None) -> int:
    """Search and score by the module's own functions."""
    from trainer.own import SCORED_WITH, refuse_incomplete

    run = decoder.run
    refuse_incomplete(run.module, SCORED_WITH)
    corpus = run.corpus()
    print(f"all yours    {', '.join(SCORED_WITH)}; beam {decoder.beam_size}")
    for name, pairs in _splits({"valid": corpus.valid, **corpus.tests}, names).items():
        said = decoder.search([source for source, _ in pairs], progress=sys.stderr.isatty())
        words = [line.split() for line in said], [target.split() for _, target in pairs]
        print(f"{name:<12} BLEU {run.module.bleu(*words):.2f} of {len(pairs):,} sentences")
    return 0


def _splits(parts: Mapping[str, Pairs], names: Sequence[str] | None) -> dict[str, Pairs]:
    for name in names or ():
        if name not in parts:
            raise ValueError(f"the corpus has no part {name}; it has {', '.join(parts)}")
    chosen = names or [name for name in parts if name != "valid"] or ["valid"]
    return {name: parts[name] for name in chosen}


def _facts(decoder: Decoder) -> dict[str, object]:
    """What a record says of the training."""
    facts, position = decoder.run.facts(), decoder.weights.position
    speed = position.tokens / max(position.seconds, 1e-9)
    return {
        "what": "evaluate",
        "run": decoder.run.path.name,
        **facts,
        "parameters": sum(tensor.numel() for tensor in decoder.weights.tensors.values()),
        "steps": position.step,
        "target_tokens": position.tokens,
        "cpu_minutes": round(position.cpu_seconds / 60, 3),
        "minutes": round(position.seconds / 60, 3),
        "training": {**facts["training"], "target_tokens_per_second": round(speed, 1)},
        "curve": _curve(decoder.run.path / "log.jsonl"),
        **decoder.facts(),
    }


def _curve(log: Path) -> list[dict[str, float]]:
    """The validations of the training."""
    from trainer.curves import read_log

    return [
        {
            "step": record["step"],
            "cpu_minutes": round(record["cpu_seconds"] / 60, 3),
            "minutes": round(record["seconds"] / 60, 3),
            **{name: record[name] for name in ("valid_loss", "bleu") if name in record},
        }
        for record in read_log(log)["valid"]
    ]
