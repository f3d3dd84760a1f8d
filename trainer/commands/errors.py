"""`python -m trainer errors`: what a run gets right and wrong, by kind, and as it learned."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

from trainer.commands.decoder import Decoder, add_decoding

SENTENCES = 500
EXAMPLES = 5
WIDTH = 34  # of the first column

Pairs = Sequence[tuple[str, str]]  # (source, target), or (target, what the model says)
Row = tuple[str, str]  # its name, and a number in words


def add(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand and its flags."""
    command = commands.add_parser(
        "errors",
        help="what a run gets right, by kind, and as it learned",
        description="Translate held-out sentences with the weights that were kept on the way and "
        "at the end, and count. On the grammar's French by what the sentence asks for: agreement, "
        "order, elision, negation, object pronouns, length. On other corpora by length: BLEU.",
    )
    add_decoding(command)
    command.add_argument(
        "--sentences",
        type=int,
        default=SENTENCES,
        metavar="N",
        help=f"how many, from the beginning of the validation set (default {SENTENCES})",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Count; the exit status."""
    if options.sentences < 1:
        raise ValueError(f"--sentences ({options.sentences}) must be at least 1")
    decoder = Decoder(options)
    corpus = decoder.run.corpus()
    pairs = corpus.valid[: options.sentences]
    for note in (*decoder.run.notes, *corpus.notes):
        print(f"note: {note}", file=sys.stderr)
    french = decoder.run.source.data == "grammar" and corpus.target_language == "fr"
    count = _by_phenomenon if french else _by_length(pairs, tokenised=corpus.tokenised)
    chosen = options.average is not None or options.weights is not None
    columns: list[tuple[str, Mapping[str, str]]] = []  # two may be of one tenth of a minute
    said: list[str] = []
    for weights in [decoder.weights] if chosen else decoder.run.on_the_way():
        decoder.weights = weights
        said = decoder.translate([source for source, _ in pairs], progress=sys.stderr.isatty())
        head = f"{weights.position.seconds / 60:.1f} min"
        both = [(right, own) for (_, right), own in zip(pairs, said, strict=True)]
        columns.append((head, dict(count(both))))
    what = "right where it is asked for" if french else "BLEU"
    print(f"{what}, {len(pairs):,} held-out sentences, beam {decoder.beam_size}")
    _print_table(columns)
    _print_examples(pairs, said)
    return 0


def _by_phenomenon(pairs: Pairs) -> list[Row]:
    """The share of sentences that are right in each respect, of those that show it."""
    from lab.phenomena import shares_right

    rows = [(name, right, there) for name, (right, there) in shares_right(pairs).items()]
    rows.append(("the whole sentence", sum(right == own for right, own in pairs), len(pairs)))
    return [
        (f"{name} ({there:,})", f"{right / there:.0%}" if there else "")
        for name, right, there in rows
    ]


def _by_length(pairs: Pairs, *, tokenised: bool) -> Callable[[Pairs], list[Row]]:
    """BLEU of the shortest quarter of the sources, the next, ..., and of all."""
    from trainer.scoring import bleu

    order = sorted(range(len(pairs)), key=lambda number: len(pairs[number][0].split()))
    size = max(len(order) // 4, 1)
    parts = [order[start : start + size] for start in range(0, 4 * size, size)]
    parts[-1] += order[4 * size :]

    def count(translated: Pairs) -> list[Row]:
        rows = []
        for part in [*filter(None, parts), order]:
            lengths = [len(pairs[number][0].split()) for number in part]
            name = f"{min(lengths)} to {max(lengths)} words ({len(part):,})"
            said, right = [translated[n][1] for n in part], [translated[n][0] for n in part]
            rows.append((name, f"{bleu(said, right, tokenised=tokenised).bleu:.1f}"))
        return rows

    return count


def _print_table(columns: Sequence[tuple[str, Mapping[str, str]]]) -> None:
    print(f"{'':<{WIDTH}}" + "".join(f"{head:>10}" for head, _ in columns))
    for name in columns[0][1]:
        print(f"{name:<{WIDTH}}" + "".join(f"{column[name]:>10}" for _, column in columns))


def _print_examples(pairs: Pairs, said: Sequence[str]) -> None:
    """The first sentences that are wrong in the end."""
    wrong = [(*pair, own) for pair, own in zip(pairs, said, strict=True) if pair[1] != own]
    if wrong:
        print("\nwrong in the end, the first of them:")
    for source, right, own in wrong[:EXAMPLES]:
        print(f"\n  {source}\n  {own}\n  right: {right}")
