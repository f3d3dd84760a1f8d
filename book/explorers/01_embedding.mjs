// A batch of sentences as tokens, ids, padding, valid lengths and mask, under rules one can change.

const STYLE = `
.batch { color: var(--pst-color-text-base); }
.batch label, .batch legend { font-size: 0.95rem; }
.batch legend { font-weight: 600; float: none; width: auto; padding: 0; margin: 0; }
.batch fieldset { border: 0; padding: 0; margin: 0; }
.batch fieldset label { display: block; padding: 0.15rem 0; }
.batch .batch-controls { display: grid; gap: 1rem 2rem; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); }
.batch .batch-label { display: block; font-weight: 600; }
.batch textarea, .batch input[type=range] { width: 100%; box-sizing: border-box; }
.batch textarea { font: inherit; padding: 0.4rem 0.5rem; resize: vertical; color: inherit;
  background: var(--pst-color-background); border: 1px solid var(--pst-color-text-muted); border-radius: 0.4rem; }
.batch input[type=range] { accent-color: var(--pst-color-primary); }
.batch .batch-scroll { overflow-x: auto; margin: 1rem 0 0.6rem; }
.batch table { border-collapse: collapse; margin: 0; width: auto; font-size: 0.9rem; color: inherit; }
.batch caption { caption-side: top; text-align: left; color: var(--pst-color-text-muted); font-size: 0.9rem; padding: 0 0 0.4rem; }
.batch th, .batch td { border: 1px solid var(--pst-color-border); padding: 0.25rem 0.5rem; text-align: center; min-width: 3.2rem; }
.batch thead th { font-weight: 600; background: var(--pst-color-surface); }
.batch td { background: var(--pst-color-background); }
.batch td span { display: block; line-height: 1.35; white-space: nowrap; }
.batch .batch-token { font-weight: 600; }
.batch .batch-id { font-variant-numeric: tabular-nums; }
.batch td.batch-special { background: var(--pst-color-primary-bg); }
.batch td.batch-pad { color: var(--pst-color-text-muted); background-image: repeating-linear-gradient(
  45deg, transparent 0 6px, var(--pst-color-border) 6px 7px); }
.batch td.batch-pad .batch-token { font-weight: 400; }
.batch .batch-summary { margin: 0.6rem 0; }
.batch details { margin-top: 0.6rem; }
.batch .batch-list { display: flex; flex-wrap: wrap; gap: 0.3rem 0.9rem; margin: 0.5rem 0 0; padding: 0; list-style: none;
  font-size: 0.9rem; font-variant-numeric: tabular-nums; }
`;

const MOST_SENTENCES = 4;

function build(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

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
    const vocabulary = buildVocabulary(model.get("training"), model.get("specials"));
    const state = { text: model.get("sentences").join("\n"), maxLen: 8, rule: "words", side: "end" };

    const choice = (name, legend, options) =>
      build(
        "fieldset",
        {},
        build("legend", {}, legend),
        ...options.map(([value, text]) =>
          build(
            "label",
            {},
            build("input", {
              type: "radio",
              name: `batch-${name}`,
              value,
              checked: state[name] === value,
              onchange: () => update({ [name]: value }),
            }),
            ` ${text}`,
          ),
        ),
      );

    const reading = build("output", { for: "batch-max-len" }, String(state.maxLen));
    const area = build("textarea", {
      id: "batch-text",
      rows: MOST_SENTENCES,
      spellcheck: "false",
      oninput: (event) => update({ text: event.target.value }),
    });
    area.value = state.text;
    const slider = build("input", {
      id: "batch-max-len",
      type: "range",
      min: 2,
      max: 12,
      step: 1,
      value: state.maxLen,
      oninput: (event) => update({ maxLen: Number(event.target.value) }),
    });
    const table = build("div", {
      class: "batch-scroll",
      tabindex: "0",
      role: "region",
      "aria-label": "The batch as a table",
    });
    const summary = build("p", { class: "batch-summary", "aria-live": "polite" });

    function draw() {
      const sentences = state.text
        .split("\n")
        .filter((line) => line.trim() !== "")
        .slice(0, MOST_SENTENCES);
      const rows = sentences.map((sentence) => cut(sentence, state.maxLen, state.rule));
      const N = Math.max(0, ...rows.map((row) => row.tokens.length));
      reading.textContent = String(state.maxLen);
      table.replaceChildren(rows.length === 0 ? "" : drawTable(rows, N));
      summary.textContent = rows.length === 0 ? "Write at least one sentence." : describe(rows, N);
    }

    function drawTable(rows, N) {
      const positions = Array.from({ length: N }, (_, n) => n);
      return build(
        "table",
        {},
        build("caption", {}, "Each cell: token, id, and ✓ real or – padding."),
        build(
          "thead",
          {},
          build(
            "tr",
            {},
            build("td", {}),
            ...positions.map((n) => build("th", { scope: "col" }, String(n))),
            build("th", { scope: "col" }, "valid length"),
          ),
        ),
        build("tbody", {}, ...rows.map((row, b) => drawRow(row.tokens, b, N))),
      );
    }

    function drawRow(tokens, b, N) {
      const padding = Array(N - tokens.length).fill("<pad>");
      const filled = state.side === "end" ? [...tokens, ...padding] : [...padding, ...tokens];
      const first = state.side === "end" ? 0 : padding.length;
      const cells = filled.map((token, n) => {
        const real = n >= first && n < first + tokens.length;
        const known = vocabulary.has(token) ? token : "<unk>";
        const special = model.get("specials").includes(known);
        return build(
          "td",
          { class: real ? (special ? "batch-special" : "") : "batch-pad" },
          build("span", { class: "batch-token" }, known === token ? token : `${token} → ${known}`),
          build("span", { class: "batch-id" }, String(vocabulary.get(known))),
          build("span", { role: "img", "aria-label": real ? "real" : "padding" }, real ? "✓" : "–"),
        );
      });
      const heading = build("th", { scope: "row" }, `sentence ${b}`);
      return build("tr", {}, heading, ...cells, build("td", {}, String(tokens.length)));
    }

    function describe(rows, N) {
      const real = rows.reduce((sum, row) => sum + row.tokens.length, 0);
      const lost = rows.reduce((sum, row) => sum + row.lost, 0);
      const endless = rows.filter((row) => row.tokens.at(-1) !== "<eos>").length;
      const unknown = rows
        .flatMap((row) => row.tokens)
        .filter((token) => !vocabulary.has(token)).length;
      const all = rows.length * N;
      return (
        `${plural(rows.length, "sentence")}, N = ${N}: ${real} of ${all} entries are real, ` +
        `${all - real} ${all - real === 1 ? "is" : "are"} padding. ` +
        `Words lost: ${lost}. Unknown words: ${unknown}. Sentences without <eos>: ${endless}.`
      );
    }

    function update(change) {
      Object.assign(state, change);
      draw();
    }

    const listed = [...vocabulary].map(([token, id]) => build("li", {}, `${id} ${token}`));
    el.append(
      build("style", {}, STYLE),
      build(
        "div",
        { class: "batch" },
        build(
          "div",
          { class: "batch-controls" },
          build(
            "div",
            {},
            build("label", { class: "batch-label", for: "batch-text" }, "Sentences, one a line"),
            area,
          ),
          build(
            "div",
            {},
            build("label", { class: "batch-label", for: "batch-max-len" }, "max_len: ", reading),
            slider,
            choice("rule", "A sentence that is too long", [
              ["words", "drop words, keep <eos>"],
              ["row", "cut the row"],
            ]),
            choice("side", "Padding", [
              ["end", "at the end"],
              ["front", "in front"],
            ]),
          ),
        ),
        table,
        summary,
        build(
          "details",
          {},
          build("summary", {}, `The vocabulary: ${vocabulary.size} tokens`),
          build("ul", { class: "batch-list" }, ...listed),
        ),
      ),
    );
    draw();
  },
};
