// A batch of sentences as tokens, ids, padding, valid lengths and mask, under rules one can change.

const { make, slider, choice, row, put, frame } = course;

const STYLE = `
.bat-text { display: flex; flex-direction: column; margin-bottom: 0.5rem; }
.bat-text textarea { font: inherit; padding: 0.4rem 0.5rem; resize: vertical; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: 6px; }
.bat-text textarea:focus-visible { outline: 3px solid var(--blue); outline-offset: 2px; }
.bat-scroll { overflow-x: auto; margin-top: 0.9rem; }
.bat-scroll table { border-collapse: separate; border-spacing: 2px; margin: 0; width: auto; font-size: 0.85rem; color: inherit; }
.bat-scroll :is(th, td) { border: 0; padding: 0.25rem; text-align: center; min-width: 2.4rem; border-radius: 3px; }
.bat-scroll th { font-weight: 600; }
.bat-scroll td { background: var(--paper); }
.bat-scroll td span { display: block; line-height: 1.35; font-variant-numeric: tabular-nums; }
.bat-scroll td span:first-child { font-weight: 600; }
.bat-scroll td.bat-special { background: var(--tint); }
.bat-scroll td.bat-pad { color: var(--quiet); background: repeating-linear-gradient(45deg, transparent 0 6px, var(--line) 6px 7px); }
.fig details { margin-top: 0.6rem; }
.fig .bat-list { display: flex; flex-wrap: wrap; gap: 0.3rem 0.9rem; margin-top: 0.5rem; font-size: 0.9rem; }
`;

const MOST_SENTENCES = 4;

function words(sentence) {
  return sentence.split(/\s+/).filter((word) => word !== "");
}

/** Special tokens first, then words by falling frequency, ties in alphabetical order. */
function buildVocabulary(sentences, specials) {
  const counts = new Map();
  for (const word of sentences.flatMap(words)) counts.set(word, (counts.get(word) ?? 0) + 1);
  const sorted = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1));
  return new Map([...specials, ...sorted].map((token, id) => [token, id]));
}

/** One sentence's tokens under a rule for cutting, and how many of its words are lost. */
function cut(sentence, maxLen, rule) {
  const all = words(sentence);
  if (rule === "words") {
    const kept = all.slice(0, maxLen - 2);
    return { tokens: ["<bos>", ...kept, "<eos>"], lost: all.length - kept.length };
  }
  const tokens = ["<bos>", ...all, "<eos>"].slice(0, maxLen);
  return { tokens, lost: Math.max(all.length - (tokens.length - 1), 0) };
}

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

export default {
  render({ model, el }) {
    const specials = model.get("specials");
    const vocabulary = buildVocabulary(model.get("training"), specials);
    const update = () => show();
    const area = make("textarea", { rows: MOST_SENTENCES - 1, spellcheck: "false" });
    area.value = model.get("sentences").join("\n");
    area.addEventListener("input", update);
    const most = slider("max_len", { min: 2, max: 12, value: 8 }, update);
    const rule = choice("a sentence that is too long", [["words", "drop words, keep <eos>"], ["row", "cut the row"]], "words", update);
    const side = choice("padding", [["end", "at the end"], ["front", "in front"]], "end", update);
    const place = make("div", { class: "bat-scroll", tabindex: 0, role: "region", "aria-label": "The batch as a table" });
    const listed = [...vocabulary].map(([token, id]) => make("li", {}, [`${id} ${token}`]));
    const words = make("details", {}, [make("summary", {}, [`The vocabulary: ${vocabulary.size} tokens`]), make("ul", { class: "bat-list" }, listed)]);
    const text = make("label", { class: "bat-text" }, [make("span", {}, ["Sentences, one a line"]), area]);
    const note = make("p", { class: "fig-note" }, ["Each cell: token, id, and ✓ real or – padding."]);
    const say = frame(el, "A batch", STYLE, text, row(rule, side, most), place, note, words);

    function line({ tokens }, b, longest) {
      const padding = Array(longest - tokens.length).fill("<pad>");
      const atEnd = side.get() === "end";
      const all = atEnd ? [...tokens, ...padding] : [...padding, ...tokens];
      const first = atEnd ? 0 : padding.length;
      const cells = all.map((token, n) => {
        const real = n >= first && n < first + tokens.length;
        const known = vocabulary.has(token) ? token : "<unk>";
        const kind = specials.includes(known) ? "bat-special" : "";
        return make("td", { class: real ? kind : "bat-pad" }, [
          make("span", {}, [known === token ? token : `${token} → ${known}`]), make("span", {}, [String(vocabulary.get(known))]),
          make("span", { role: "img", "aria-label": real ? "real" : "padding" }, [real ? "✓" : "–"]),
        ]);
      });
      return make("tr", {}, [make("th", { scope: "row" }, [`sentence ${b}`]), ...cells, make("td", {}, [String(tokens.length)])]);
    }

    function table(rows, longest) {
      const names = [...Array(longest).keys(), "valid length"].map((name) => make("th", { scope: "col" }, [String(name)]));
      return make("table", {}, [make("thead", {}, [make("tr", {}, [make("td"), ...names])]), make("tbody", {}, rows.map((one, b) => line(one, b, longest)))]);
    }

    function summary(rows, longest) {
      const tokens = rows.flatMap((one) => one.tokens);
      const [all, lost] = [rows.length * longest, rows.reduce((sum, one) => sum + one.lost, 0)];
      const endless = rows.filter((one) => one.tokens.at(-1) !== "<eos>").length;
      const unknown = tokens.filter((token) => !vocabulary.has(token)).length;
      const padding = all - tokens.length;
      return `${plural(rows.length, "sentence")}, N = ${longest}: ${tokens.length} of ${all} entries are real, ${padding} ${padding === 1 ? "is" : "are"} padding. Words lost: ${lost}. Unknown words: ${unknown}. Sentences without <eos>: ${endless}.`;
    }

    function show() {
      const sentences = area.value.split("\n").filter((one) => one.trim() !== "").slice(0, MOST_SENTENCES);
      const rows = sentences.map((sentence) => cut(sentence, most.get(), rule.get()));
      const longest = Math.max(0, ...rows.map(({ tokens }) => tokens.length));
      put(place, ...(rows.length ? [table(rows, longest)] : []));
      say(rows.length ? summary(rows, longest) : "Write at least one sentence.");
    }
    show();
  },
};
