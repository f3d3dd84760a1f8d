"""The book's translator in a real browser: its arithmetic is torch's, and so is what it writes."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

from lab import little
from lab.assembled import build, load_module
from lab.batching import pad_ids
from lab.five_minutes import GrammarData, grammar_data
from lab.page import numbers, plain, writing
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


def test_the_encoders_stages_are_torchs(page: tuple[Page, str], torchs: Torchs):
    seen: list[torch.Tensor] = []
    hooks = [
        norm.register_forward_hook(lambda _, given, out: seen.extend((given[0][0], out[0])))
        for layer in cast("Any", torchs.model).encoder.layers
        for norm in (layer.norm1, layer.norm2)
    ]
    source = torchs.data.source.encode(english(torchs, 1)[0])
    with torch.no_grad():
        torchs.model(torch.tensor([source]), torch.tensor([[torchs.data.target.bos_id]]))
    for hook in hooks:
        hook.remove()
    code = """return model.encode(given[0]).stages.flatMap(({ rows, made, sum, out }) => {
      const apart = (i, j) => Math.abs(rows[i][j] + made[i][j] - sum[i][j]);
      const same = rows.every((row, i) => row.every((_, j) => apart(i, j) < 1e-5));
      return same ? [sum, out].map((all) => all.map((row) => [...row])) : [];
    });"""
    found = ask(page, code, source)
    assert len(found) == len(seen) == 8
    assert all((torch.tensor(a) - b).abs().max() < CLOSE for a, b in zip(found, seen, strict=True))


@pytest.mark.parametrize("word", ["queen", "eats", "three"])
def test_nearest_rows_are_torchs(word: str, page: tuple[Page, str], torchs: Torchs):
    table = numbers.unpacked(torchs.content)[0]["source_embedding.weight"]
    (row,) = torchs.data.source.encode(word)[1:-1]
    near = torch.cosine_similarity(table, table[row : row + 1])
    near[[*range(4), row]] = -1  # special tokens, and the word itself
    wanted = near.topk(5)
    found = ask(page, "return t.nearest(model, given[0], 5);", row)
    assert [one["id"] for one in found] == wanted.indices.tolist()
    assert [one["share"] for one in found] == pytest.approx(wanted.values.tolist(), abs=CLOSE)


def test_a_hidden_token_is_hidden_and_padding_can_be_seen(page: tuple[Page, str], torchs: Torchs):
    tensors, positions = numbers.unpacked(torchs.content)
    sizes = plain.Sizes(**torchs.content["sizes"])
    ids = [*torchs.data.source.encode(english(torchs, 1)[0]), 0, 0]
    code = """
      model.switches = { ...t.WHOLE, padding: given[2] };
      return model.encode(given[0], given[1]).stages.at(-1).out.map((row) => [...row]);"""
    for hidden, padding in ((-1, True), (3, True), (-1, False)):
        seen = torch.tensor(
            [[i != hidden and (one != 0 or not padding) for i, one in enumerate(ids)]]
        )
        stages = plain.encoder_stages(tensors, sizes, positions, torch.tensor([ids]), seen)
        found = torch.tensor(ask(page, code, ids, hidden, padding))
        assert (found - stages[-1]["out"][0]).abs().max() < CLOSE


def test_it_goes_on_after_a_wrong_word_as_torch_does(page: tuple[Page, str], torchs: Torchs):
    data = torchs.data
    source = data.source.encode("the small strange dog is not white .")
    written = data.target.encode("le petit chien étrange est")[:-1]
    beginning = written[1:]
    with torch.no_grad():
        while written[-1] != data.target.eos_id:
            logits = torchs.model(torch.tensor([source]), torch.tensor([written]))[0, -1]
            written.append(int(logits.argmax()))
    code = "return t.carryOn(model, model.encode(given[0]), given[1]).steps.map(({ id }) => id);"
    assert ask(page, code, source, beginning) == written[len(beginning) + 1 :]


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


SAID = {  # what chapters' answers say of the smaller figures
    ("01_embedding", "eats"): ("nearest(model, id, 1)", ["eat"]),
    ("01_embedding", "queen"): (
        "nearest(model, id)",
        ["girl", "aunt", "woman", "sister", "meat", "soup", "house"],
    ),
}


@pytest.mark.parametrize(("chapter", "word"), SAID)
def test_the_answers_on_rows_are_what_the_table_says(
    chapter: str, word: str, page: tuple[Page, str]
):
    told, wanted = SAID[chapter, word]
    code = f"""
      const [id] = model.source.encode(given[0]);
      return t.{told}.map((one) => model.source.words[one.id]);"""
    assert ask(page, code, word) == wanted
    text = (ROOT / "book" / f"{chapter}.md").read_text("utf-8")
    assert all(f'"{one}"' in text for one in (word, *wanted) if one != "sister")


CARRIED = {  # what chapter 8's answer says: sentence, beginning, what is then written
    ("the small strange dog is not white .", "le petit chien étrange est"): "blanc .",
    ("we do not draw these grey newspapers .", "je"): "ne dessine pas ces journaux gris .",
    ("the small strange dog is not white .", "la"): "petit chien étrange n' est pas blanc .",
}


@pytest.mark.parametrize(("sentence", "beginning"), CARRIED)
def test_an_error_is_carried_on_as_the_chapter_says(
    sentence: str, beginning: str, page: tuple[Page, str]
):
    code = """
      const source = model.encode(model.ids(given[0]));
      return model.text(t.carryOn(model, source, model.target.encode(given[1])).ids);"""
    assert ask(page, code, sentence, beginning) == CARRIED[sentence, beginning]


def test_sizes_without_norms_are_what_chapter_5_says(page: tuple[Page, str]):
    code = """
      const place = given[0].split(" ").indexOf("live") + 1;
      const norms = [0, 1].flatMap((n) => [1, 2].map((m) => `encoder.layers.${n}.norm${m}`));
      return [[], norms].map((off) => {
        model.switches = { ...t.WHOLE, norms: new Set(off) };
        const row = model.encode(model.ids(given[0])).stages.at(-1).out[place];
        return Math.sqrt(row.reduce((sum, value) => sum + value ** 2, 0) / row.length).toFixed(2);
      });"""
    sizes = ask(page, code, "she does not live near a quiet garden .")
    text = (ROOT / "book" / "05_layer_norm.md").read_text("utf-8")
    assert f"{sizes[0]} with norms, {sizes[1]} without" in text


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
