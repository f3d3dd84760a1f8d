"""Scores agree with the formula, say how they were counted, and refuse what cannot be scored."""

import math

import pytest

from trainer.scoring import bleu

REFERENCES = ["le chat dort sur le lit .", "deux chiens courent dans l&apos; herbe ."]


def test_the_references_themselves_score_100():
    for tokenised in (True, False):
        score = bleu(REFERENCES, REFERENCES, tokenised=tokenised)
        assert score.bleu == pytest.approx(100)
        assert score.chrf == pytest.approx(100)
        assert (score.brevity, score.length_ratio) == (1, 1)


def test_tokenised_text_is_counted_as_it_stands():
    references = ["a b c d e f g h"]
    score = bleu(["a b c d e x g h"], references, tokenised=True)
    precisions = [7 / 8, 5 / 7, 3 / 6, 2 / 5]
    assert score.precisions == pytest.approx([100 * one for one in precisions])
    assert score.bleu == pytest.approx(100 * math.prod(precisions) ** 0.25)


def test_short_translations_pay_the_brevity_penalty():
    score = bleu(["a b c d e f"], ["a b c d e f g h"], tokenised=True)
    assert score.brevity == pytest.approx(math.exp(1 - 8 / 6))
    assert score.bleu == pytest.approx(100 * score.brevity)
    assert score.length_ratio == pytest.approx(6 / 8)


def test_the_signature_says_how_words_were_split():
    plain = bleu(REFERENCES, REFERENCES, tokenised=True).signature
    raw = bleu(REFERENCES, REFERENCES, tokenised=False).signature
    assert {"case:mixed", "tok:none", "nrefs:1"} < set(plain.split("|"))
    assert {"case:lc", "tok:13a", "nrefs:1"} < set(raw.split("|"))


def test_raw_text_is_split_and_lower_cased_tokenised_text_is_neither():
    said, right = ["Le Chat dort, ici."], ["le chat dort , ici ."]
    raw, plain = (bleu(said, right, tokenised=tokenised) for tokenised in (False, True))
    assert (raw.bleu, raw.chrf) == pytest.approx((100, 100))
    assert plain.bleu < 50
    assert plain.chrf < 95


def test_an_empty_translation_is_allowed():
    assert bleu(["", REFERENCES[1]], REFERENCES, tokenised=True).bleu < 100


def test_scoring_tokenised_text_warns_of_nothing(caplog, capsys):
    many = [f"{REFERENCES[0]}"] * 200
    bleu(many, many, tokenised=True)
    bleu(many, many, tokenised=False)
    assert not caplog.records
    assert capsys.readouterr().err == ""


def test_different_counts_are_refused():
    with pytest.raises(ValueError, match="1 translations for 2 references"):
        bleu(REFERENCES[:1], REFERENCES, tokenised=True)


def test_nothing_to_score_is_refused():
    with pytest.raises(ValueError, match="0 translations"):
        bleu([], [], tokenised=True)
