"""How good translations are, by sacrebleu, whose signature says how it counted."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU, BLEUScore
from sacrebleu.metrics.chrf import CHRF


@dataclass(frozen=True)
class Score:
    """Corpus scores on 0 to 100.

    Attributes:
        bleu: Papineni et al., 2002.
        signature: sacrebleu's; only scores of one signature compare.
        brevity: penalty for translations that are shorter than the references; 1 for none.
        precisions: of 1 to 4 words in a row, in percent.
        length_ratio: words of the translations over words of the references.
        chrf: Popović, 2015: F-score of character sequences, which knows no words.
        chrf_signature: sacrebleu's.
    """

    bleu: float
    signature: str
    brevity: float
    precisions: tuple[float, ...]
    length_ratio: float
    chrf: float
    chrf_signature: str


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, tokenised: bool) -> Score:
    """Score translations against one reference each.

    Args:
        hypotheses: the translations.
        references: what they should say, in the same order.
        tokenised: the texts are tokenised and lower-cased already, and counted as they stand
            (multi-bleu's numbers, which papers on Multi30k report); otherwise sacrebleu splits
            them by its rule "13a", in lower case.

    Raises:
        ValueError: if there is nothing to score, or the counts differ.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} translations for {len(references)} references; there must be one "
            "for each"
        )
    if not hypotheses:
        raise ValueError("0 translations given; a score needs at least 1")
    # force: sacrebleu would warn that the text looks tokenised, which it is on purpose.
    words = BLEU(tokenize="none", force=True) if tokenised else BLEU(lowercase=True, force=True)
    letters = CHRF(lowercase=not tokenised)
    result = words.corpus_score(hypotheses, [references])
    assert isinstance(result, BLEUScore)
    return Score(
        bleu=result.score,
        signature=str(words.get_signature()),
        brevity=result.bp,
        precisions=tuple(result.precisions),
        length_ratio=result.ratio,
        chrf=letters.corpus_score(hypotheses, [references]).score,
        chrf_signature=str(letters.get_signature()),
    )
