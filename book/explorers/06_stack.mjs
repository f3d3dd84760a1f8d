// A small encoder with random weights, taken apart: something in its input changes, and a table
// shows whose output moves, layer by layer. All arithmetic happens here, when a control is moved.

const STYLE = `
.enc-explorer { color: var(--pst-color-text-base, inherit); }
.enc-explorer fieldset { border: 0; margin: 0 0 0.6rem; padding: 0; min-width: 0; }
.enc-explorer legend { font-weight: 600; font-size: 1rem; margin-bottom: 0.3rem; }
.enc-explorer .enc-controls { display: flex; flex-wrap: wrap; gap: 0.5rem 1.4rem; align-items: end; }
.enc-explorer .enc-choice { display: flex; flex-direction: column; flex: 1 1 13rem; min-width: 0; }
.enc-explorer select { width: 100%; min-height: 32px; font: inherit; color: var(--pst-color-text-base, inherit); background: var(--pst-color-background, transparent); border: 1px solid var(--pst-color-border, #888); border-radius: 4px; }
.enc-explorer input[type="range"] { width: 100%; min-height: 24px; accent-color: #2f7fd6; }
.enc-explorer .enc-check { display: inline-flex; gap: 0.45rem; align-items: center; min-height: 24px; }
.enc-explorer input[type="checkbox"] { width: 18px; height: 18px; accent-color: #2f7fd6; }
.enc-explorer .enc-scroll { overflow-x: auto; margin-top: 0.4rem; }
.enc-explorer table { border-collapse: collapse; width: 100%; margin: 0; font-size: 0.85rem; font-variant-numeric: tabular-nums; color: var(--pst-color-text-base, inherit); }
.enc-explorer caption { caption-side: top; text-align: left; color: var(--pst-color-text-base, inherit); padding: 0 0 0.3rem; }
.enc-explorer th, .enc-explorer td { padding: 0.25rem 0.3rem; text-align: center; border: 1px solid var(--pst-color-border, #888); }
.enc-explorer th { font-weight: 600; }
.enc-explorer tr.enc-padding th, .enc-explorer tr.enc-padding td { font-style: italic; }
.enc-explorer .enc-summary { margin: 0.7rem 0 0; }
`;

const CHANGES = [
  ["padding", "other numbers in the padding"],
  ["swap", "the first two words change places"],
  ["word", "another last word"],
];
const MASKS = [
  ["all", "padding hidden in every layer"],
  ["first", "padding hidden in the first layer only"],
  ["none", "padding not hidden"],
  ["queries", "padded queries hidden, not keys"],
];
const STILL = 1e-9;

function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const zip = (a, b, join) => a.map((value, i) => join(value, b[i]));
const add = (a, b) => zip(a, b, (x, y) => x + y);
const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

// A row times a matrix that is given as a list of columns.
const times = (row, columns) => columns.map((column) => dot(row, column));

function normalised(row) {
  const mean = row.reduce((a, b) => a + b, 0) / row.length;
  const centred = row.map((value) => value - mean);
  const deviation = Math.sqrt(dot(centred, centred) / row.length + 1e-5);
  return centred.map((value) => value / deviation);
}

function softmax(scores) {
  const largest = Math.max(...scores);
  const parts = scores.map((score) => Math.exp(score - largest));
  const total = parts.reduce((a, b) => a + b, 0);
  return parts.map((part) => part / total);
}

// One post-norm layer: attention with one head, then a feed-forward network.
function layer(rows, weights, sees) {
  const queries = rows.map((row) => times(row, weights.q));
  const keys = rows.map((row) => times(row, weights.k));
  const values = rows.map((row) => times(row, weights.v));
  return rows.map((row, i) => {
    const visible = keys.map((_, j) => j).filter((j) => sees(i, j));
    const shares = softmax(visible.map((j) => dot(queries[i], keys[j]) / Math.sqrt(row.length)));
    let fetched = row.map(() => 0);
    visible.forEach((j, n) => {
      fetched = add(fetched, values[j].map((value) => shares[n] * value));
    });
    const middle = normalised(add(row, fetched));
    const hidden = times(middle, weights.up).map((value) => Math.max(0, value));
    return normalised(add(middle, times(hidden, weights.down)));
  });
}

// Position n as sines and cosines, as in the chapter on positional encoding.
function position(n, width) {
  return Array.from({ length: width }, (_, j) => {
    const angle = n / 10000 ** ((j - (j % 2)) / width);
    return j % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export default {
  render({ model, el }) {
    const words = model.get("words");
    const padding = model.get("padding");
    const width = model.get("width");
    const depth = model.get("depth");
    const random = generator(model.get("seed"));
    const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const vector = (length, scale = 1) => Array.from({ length }, () => scale * normal());
    const matrix = (rows, columns) => Array.from({ length: columns }, () => vector(rows, rows ** -0.5));

    const real = words.length;
    const vectors = words.map(() => vector(width));
    const fillers = Array.from({ length: padding }, () => vector(width));
    const otherFillers = Array.from({ length: padding }, () => vector(width));
    const otherWord = vector(width);
    const layers = Array.from({ length: depth }, () => ({
      q: matrix(width, width),
      k: matrix(width, width),
      v: matrix(width, width),
      up: matrix(width, 2 * width),
      down: matrix(2 * width, width),
    }));

    const select = (text, options) => {
      const input = element("select");
      for (const [value, shown] of options) input.append(element("option", { value }, shown));
      return { label: element("label", { className: "enc-choice" }, element("span", {}, text), input), input };
    };
    const checkbox = (text) => {
      const input = element("input", { type: "checkbox" });
      return { label: element("label", { className: "enc-check" }, input, text), input };
    };
    const change = select("What changes", CHANGES);
    const mask = select("Mask", MASKS);
    const shownDepth = element("span");
    const count = element("input", { type: "range", min: 1, max: depth, step: 1 });
    count.value = Math.min(3, depth);
    const countLabel = element(
      "label",
      { className: "enc-choice" },
      element("span", {}, "layers = ", shownDepth),
      count,
    );
    const positions = checkbox("positions added");
    const causal = checkbox("causal mask");

    const header = element("tr");
    const body = element("tbody");
    const table = element(
      "table",
      {},
      element("caption", {}, "How far each token's output moves; a dash means not at all"),
      element("thead", {}, header),
      body,
    );
    const scroll = element("div", { className: "enc-scroll", tabIndex: 0 }, table);
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Table of changes by token and layer");
    const summary = element("p", { className: "enc-summary" });
    summary.setAttribute("aria-live", "polite");

    // Whether query i may attend to key j in this layer. A query that may see nothing else sees itself.
    const seesIn = (number) => (i, j) => {
      if (i === j) return true;
      if (causal.input.checked && j > i) return false;
      const rule = mask.input.value;
      if (rule === "queries") return i < real;
      return j < real || rule === "none" || (rule === "first" && number > 0);
    };

    // The rows after each layer, before and after the change, for the same tokens.
    const run = (rows) => {
      let state = positions.input.checked ? rows.map((row, n) => add(row, position(n, width))) : rows;
      return layers.slice(0, Number(count.value)).map((weights, number) => {
        state = layer(state, weights, seesIn(number));
        return state;
      });
    };

    const draw = () => {
      const kind = change.input.value;
      const before = [...vectors, ...fillers];
      const after = [...before];
      const cameFrom = before.map((_, n) => n);
      if (kind === "padding") after.splice(real, padding, ...otherFillers);
      if (kind === "word") after[real - 1] = otherWord;
      if (kind === "swap") {
        [after[0], after[1]] = [after[1], after[0]];
        [cameFrom[0], cameFrom[1]] = [1, 0];
      }
      const [first, second] = [run(before), run(after)];
      const names = words.concat(fillers.map(() => "padding"));
      header.replaceChildren(element("th", { scope: "col" }, "token"));
      first.forEach((_, m) => header.append(element("th", { scope: "col" }, `layer ${m + 1}`)));
      body.replaceChildren();
      const movedIn = first.map(() => 0);
      names.forEach((name, n) => {
        const replaced = kind === "word" && n === real - 1;
        const label = replaced ? `${name} → ${model.get("other")}` : name;
        const row = element("tr", { className: n < real ? "" : "enc-padding" });
        row.append(element("th", { scope: "row" }, label));
        first.forEach((rows, m) => {
          const place = cameFrom.indexOf(n);
          const gaps = zip(rows[n], second[m][place], (x, y) => Math.abs(x - y));
          const gap = Math.max(...gaps);
          const still = gap < STILL;
          if (!still && n < real) movedIn[m] += 1;
          const cell = element("td", {}, still ? "–" : gap.toFixed(2));
          if (still) cell.setAttribute("aria-label", "does not move");
          else cell.style.background = `rgba(230, 114, 6, ${Math.min(0.4, 0.12 + 0.12 * gap).toFixed(3)})`;
          row.append(cell);
        });
        body.append(row);
      });
      const told = movedIn.map((number, m) => `${number} after layer ${m + 1}`).join(", ");
      summary.textContent = `Of the ${real} real words, moved: ${told}.`;
      shownDepth.textContent = count.value;
    };

    const controls = [change.label, mask.label, countLabel, positions.label, causal.label];
    for (const input of [change.input, mask.input, count, positions.input, causal.input]) {
      input.addEventListener("input", draw);
    }
    el.append(
      element(
        "div",
        { className: "enc-explorer" },
        element("style", {}, STYLE),
        element(
          "fieldset",
          {},
          element("legend", {}, "A stack, taken apart"),
          element("div", { className: "enc-controls" }, ...controls),
        ),
        scroll,
        summary,
      ),
    );
    draw();
  },
};
