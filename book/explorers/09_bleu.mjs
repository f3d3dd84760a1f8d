// BLEU of one sentence that the reader edits: every run of one to four words, which of them stand in
// the reference, and how the precisions and the length become the score.

const { make, draw, range, fixed, push, row, put, frame } = course;

const [TALL, GAP, LEFT] = [26, 6, 92]; // pixels: a row's height, between two rows, and before them
const LETTER = 7.6; // width of a letter, about
const MOST_WORDS = 14;
const STYLE = `
.ble-text { display: flex; flex-direction: column; margin-bottom: 0.5rem; }
.ble-text input { font: inherit; min-height: 32px; padding: 0.15rem 0.5rem; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: 6px; }
.ble-picture { margin-top: 0.9rem; }
.ble-found { fill: var(--blue); }
.ble-lost { fill: none; stroke: var(--rust); stroke-dasharray: 4 3; }
.fig svg .ble-word { font-weight: 600; }
.fig svg .ble-other { fill: var(--rust); font-weight: 600; }
`;

const words = (text) => text.split(/\s+/).filter((word) => word !== "");
const runs = (tokens, n) => range(Math.max(0, tokens.length - n + 1)).map((i) => tokens.slice(i, i + n).join(" "));

// Which runs of n words count: each at most as often as it stands in the reference.
function found(tokens, reference, n) {
  const left = new Map();
  for (const one of runs(reference, n)) left.set(one, (left.get(one) ?? 0) + 1);
  return runs(tokens, n).map((one) => {
    const there = left.get(one) ?? 0;
    left.set(one, there - 1);
    return there > 0;
  });
}

function score(tokens, reference) {
  const rows = [1, 2, 3, 4].map((n) => found(tokens, reference, n));
  const shares = rows.map((one) => (one.length ? one.filter(Boolean).length / one.length : 0));
  const brevity = tokens.length ? Math.min(1, Math.exp(1 - reference.length / tokens.length)) : 0;
  return { rows, brevity, bleu: 100 * brevity * shares.reduce((a, b) => a * b, 1) ** 0.25 };
}

function picture(tokens, { rows }) {
  const wide = Math.max(44, ...tokens.map((word) => LETTER * word.length + 12));
  const cells = rows.flatMap((row, k) => row.map((is, i) => {
    const [x, y] = [LEFT + wide * (i + k / 2), 30 + (TALL + GAP) * k];
    const run = tokens.slice(i, i + k + 1).join(" ");
    return draw("rect", { x: x + 2, y, width: wide - 4, height: TALL, rx: 4, class: is ? "ble-found" : "ble-lost" }, [draw("title", {}, [`${run}: ${is ? "counts" : "does not count"}`])]);
  }));
  const names = ["words", "pairs", "triples", "quadruples"].map((name, k) =>
    draw("text", { x: LEFT - 10, y: 30 + (TALL + GAP) * k + TALL / 2, "text-anchor": "end", "dominant-baseline": "central", class: "fig-faint" }, [name]));
  const top = tokens.map((word, i) =>
    draw("text", { x: LEFT + wide * (i + 0.5), y: 18, "text-anchor": "middle", class: rows[0][i] ? "ble-word" : "ble-other" }, [word]));
  const [width, height] = [LEFT + wide * Math.max(1, tokens.length) + 2, 30 + (TALL + GAP) * rows.length];
  const told = rows.map((row, k) => `${row.filter(Boolean).length} of ${row.length} ${["words", "pairs", "triples", "quadruples"][k]}`);
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Found in the reference: ${told.join(", ")}` }, [...top, ...names, ...cells]);
}

export default {
  render({ model, el }) {
    const reference = words(model.get("reference"));
    const input = make("input", { type: "text", spellcheck: "false", autocomplete: "off" });
    const write = (text) => { input.value = text; show(); };
    input.addEventListener("input", () => show());
    const tries = model.get("tries").map(([name, text]) => push(name, () => write(text)));
    const place = make("div", { class: "fig-scroll ble-picture", tabindex: 0, role: "region", "aria-label": "Runs of words" });
    const say = frame(el, "Which runs of words count", STYLE,
      make("label", { class: "ble-text" }, ["translation", input]),
      row(...tries),
      make("p", { class: "fig-note" }, [`Reference: ${reference.join(" ")}`]),
      place);

    function show() {
      const tokens = words(input.value).slice(0, MOST_WORDS);
      const result = score(tokens, reference);
      put(place, picture(tokens, result));
      const told = result.rows.map((row) => `${row.filter(Boolean).length} of ${row.length}`);
      say(`Words ${told[0]}, pairs ${told[1]}, triples ${told[2]}, quadruples ${told[3]}; brevity penalty ${fixed(result.brevity)}: BLEU ${fixed(result.bleu, 1)}.`);
    }
    write(model.get("start"));
  },
};
