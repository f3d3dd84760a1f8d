"""The book's translator in a real browser: its arithmetic is torch's, and so is what it writes."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lab import little
from lab.assembled import build, load_module
from lab.batching import pad_ids
from lab.five_minutes import GrammarData, grammar_data
from lab.page import numbers, writing
from tests.browsing import BROWSER, Page, browsing
from tests.conftest import ROOT
from tests.small_training import MODULE
from tests.test_lab_page import BOOKS

SENTENCES = 200
CLOSE = 1e-4
BEAMS = 50  # sentences; a search is some twenty times the work
ODD = [
    "",
    "the zebra sleeps .",
    " the  cat\tsleeps . ",
    "a<pad>cat <eos> <bos>.",
    "the\u00a0cat",
    "The cat",
]

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine"),
    pytest.mark.usefixtures("one_thread"),
]


@dataclass(frozen=True)
class Torchs:
    """The book's model in torch, with the numbers that the page computes with."""

    model: nn.Module
    module: Any
    data: GrammarData
    content: dict


@pytest.fixture(scope="module")
def torchs() -> Torchs:
    """The model, and the sentences it was trained without."""
    content = numbers.read_file(BOOKS.read_text(encoding="utf-8"))
    module, data = load_module(MODULE), grammar_data(little.PAIRS, little.SEED)
    sizes = little.little_recipe().sizes()
    vocabularies = len(data.source), len(data.target)
    model = build(module, vocabularies, data.max_len, data.target.pad_id, sizes, seed=1)
    model.load_state_dict(numbers.unpacked(content)[0])
    return Torchs(model.eval(), module, data, content)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, str]]:
    """A browser, and the address of a page with the book's model and no more."""
    folder = tmp_path_factory.mktemp("translator")
    scripts = writing.code_script(), BOOKS.read_text(encoding="utf-8")
    body = "".join(f"<script>{script}</script>" for script in scripts)
    (folder / "page.html").write_text(f"<meta charset=utf-8>{body}", encoding="utf-8")
    with browsing(folder / "profile", {}) as window:
        yield window, (folder / "page.html").as_uri()


def ask(page: tuple[Page, str], code: str, *given: object) -> Any:
    """What a function of the translator, its model and more gives in the browser."""
    window, address = page
    arguments = ", ".join(json.dumps(one) for one in given)
    call = (
        f"JSON.stringify(((t, model, ...given) => {{ {code} }})"
        f"(courseTranslator, new courseTranslator.Model(courseTranslator.content()), {arguments}))"
    )
    return json.loads(window.show(address, "globalThis.courseTranslator?.content()", call))


def english(torchs: Torchs, count: int) -> list[str]:
    return [sentence for sentence, _ in torchs.data.held_out[:count]]


def test_words_become_the_same_ids(page: tuple[Page, str], torchs: Torchs):
    sentences = [*english(torchs, SENTENCES), *ODD]
    found = ask(page, "return given[0].map((one) => model.ids(one));", sentences)
    assert found == torchs.data.source.encode_all(sentences)


def test_what_people_type_becomes_what_the_grammar_writes(page: tuple[Page, str]):
    typed = {
        "The cat doesn't sleep": "the cat does not sleep .",
        "Does the cat sleep?": "does the cat sleep ?",
        "is he happy": "is he happy ?",
        " the doctor\u2019s  house is big. ": "the doctor 's house is big .",
        "He can't dance!": "he cannot dance .",
        "  ": "",
    }
    assert ask(page, "return given[0].map(t.tidy);", list(typed)) == list(typed.values())


def test_logits_are_torchs(page: tuple[Page, str], torchs: Torchs):
    pairs = [
        [torchs.data.source.encode(first), torchs.data.target.encode(second)]
        for first, second in torchs.data.held_out[:SENTENCES]
    ]
    code = """
      return given[0].map(([source, target]) => {
        let state = model.begin(model.encode(source));
        const rows = target.slice(0, -1).flatMap((id) => {
          state = model.step(state, id);
          return [...state.logits];
        });
        const bytes = new Uint8Array(new Float32Array(rows).buffer);
        return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
      });"""
    found = ask(page, code, pairs)
    apart = []
    with torch.no_grad():
        for (source, target), written in zip(pairs, found, strict=True):
            wanted = torchs.model(torch.tensor([source]), torch.tensor([target[:-1]]))[0]
            said = np.frombuffer(base64.b64decode(written), "<f4").reshape(wanted.shape)
            apart.append(np.abs(wanted.numpy() - said).max())
    print(f"largest difference of {len(apart)} sentences: {max(apart):.2g}")
    assert max(apart) < CLOSE


def test_greedy_decoding_writes_the_same(page: tuple[Page, str], torchs: Torchs):
    sentences, data = english(torchs, SENTENCES), torchs.data
    ids, _ = pad_ids(data.source.encode_all(sentences), data.source.pad_id)
    ends = data.target.bos_id, data.target.eos_id
    wanted = torchs.module.greedy_decode(torchs.model, ids, *ends, data.max_len - 1)
    assert ask(page, "return given[0].map((one) => t.greedy(model, one).ids);", sentences) == wanted


def test_beam_search_writes_the_same(page: tuple[Page, str], torchs: Torchs):
    sentences, data = english(torchs, BEAMS), torchs.data
    ends = data.target.bos_id, data.target.eos_id
    code = """return given[0].map((one) => {
      const { ids, best } = t.beam(model, one, 4);
      return [ids, best.score];
    });"""
    for sentence, (ids, score) in zip(sentences, ask(page, code, sentences), strict=True):
        source = torch.tensor([data.source.encode(sentence)])
        wanted = torchs.module.beam_search(torchs.model, source, *ends, data.max_len - 1, 4)
        assert ids == wanted[0], sentence
        assert score == pytest.approx(wanted[1], abs=CLOSE)


SWITCHED = {
    "causal": "causal: false",
    "positions": "positions: false",
    "encoder.layers.0.self_attention/1": "heads: new Set(['encoder.layers.0.self_attention/1'])",
    "decoder.layers.1.cross_attention/3": "heads: new Set(['decoder.layers.1.cross_attention/3'])",
    "decoder.layers.0.norm2": "norms: new Set(['decoder.layers.0.norm2'])",
}


def without(torchs: Torchs, part: str, monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    """The book's model in torch with one part switched off."""
    data, content = torchs.data, torchs.content
    sizes = little.little_recipe().sizes()
    vocabularies = len(data.source), len(data.target)
    places = data.max_len, data.target.pad_id
    model: Any = build(torchs.module, vocabularies, *places, sizes, 1).eval()
    model.load_state_dict(numbers.unpacked(content)[0])
    if part == "causal":
        everything = lambda n: torch.ones(n, n, dtype=torch.bool)  # noqa: E731
        monkeypatch.setattr(torchs.module, "causal_mask", everything)
    elif part == "positions":
        model.positional_encoding.encoding.zero_()
    elif "/" in part:
        name, head = part.split("/")
        width = sizes["d_model"] // sizes["num_heads"]
        w_o = model.get_submodule(name).w_o.weight.data
        w_o[:, width * int(head) : width * (int(head) + 1)] = 0
    else:
        name, _, norm = part.rpartition(".")
        setattr(model.get_submodule(name), norm, nn.Identity())
    return model


@pytest.mark.parametrize("part", SWITCHED)
def test_a_switch_does_what_it_says(
    part: str, page: tuple[Page, str], torchs: Torchs, monkeypatch: pytest.MonkeyPatch
):
    model = without(torchs, part, monkeypatch)
    source, target = (
        tokenizer.encode(sentence)
        for tokenizer, sentence in zip(
            (torchs.data.source, torchs.data.target), torchs.data.held_out[0], strict=True
        )
    )
    code = f"""
      model.switches = {{ ...t.WHOLE, {SWITCHED[part]} }};
      let state = model.begin(model.encode(given[0]));
      for (const id of given[1].slice(0, -1)) state = model.step(state, id);
      return [...state.logits];"""
    found = torch.tensor(ask(page, code, source, target))
    with torch.no_grad():
        given = torch.tensor([source]), torch.tensor([target[:-1]])
        wanted, whole = (one(*given)[0, -1] for one in (model, torchs.model))
    assert (found - wanted).abs().max() < CLOSE * max(1.0, wanted.abs().max().item() / 10)
    assert part == "causal" or (found - whole).abs().max() > 10 * CLOSE


TOLD = {  # what the chapters' answers say of a sentence with something switched off
    ("10_full_model", "the small strange dog is not white .", "positions: false"): (
        "le petit chien n' est pas blanc ne étrange ."
    ),
    ("07_decoder", "the small strange dog is not white .", "causal: false"): (
        "le petit chien étrange n' est pas ."
    ),
    (
        "04_multi_head_attention",
        "she does not live near a quiet garden .",
        "heads: new Set(['decoder.layers.1.cross_attention/1'])",
    ): "elle ne habite pas près un jardin calme .",
    (
        "04_multi_head_attention",
        "she does not live near a quiet garden .",
        "heads: new Set(['decoder.layers.1.cross_attention/3'])",
    ): "elle n' habite pas près d' une jardin calme .",
}


@pytest.mark.parametrize(("chapter", "sentence", "switched"), TOLD)
def test_the_chapters_answers_are_what_it_writes(
    chapter: str, sentence: str, switched: str, page: tuple[Page, str]
):
    code = f"""
      model.switches = {{ ...t.WHOLE, {switched} }};
      return model.text(t.greedy(model, given[0]).ids);"""
    assert ask(page, code, sentence) == TOLD[chapter, sentence, switched]
    assert f"{{translator}} {sentence}" in (ROOT / "book" / f"{chapter}.md").read_text("utf-8")


def test_six_of_eight_heads_can_go_one_at_a_time(page: tuple[Page, str]):
    code = """
      return [0, 1].flatMap((layer) => [0, 1, 2, 3].map((head) => {
        const heads = new Set([`decoder.layers.${layer}.cross_attention/${head}`]);
        model.switches = { ...t.WHOLE, heads };
        return model.text(t.greedy(model, given[0]).ids);
      }));"""
    found = ask(page, code, "she does not live near a quiet garden .")
    assert found.count("elle n' habite pas près d' un jardin calme .") == 6
