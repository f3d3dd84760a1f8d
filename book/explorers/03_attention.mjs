// Attention weights of random queries and keys, with the scale, the temperature and both masks in
// the reader's hands. A real table, so that every number can be read, copied and spoken.

const STYLE = `
.att-explorer { color: var(--pst-color-text-base, inherit); }
.att-explorer fieldset { border: 0; margin: 0 0 0.6rem; padding: 0; min-width: 0; }
.att-explorer legend { font-weight: 600; font-size: 1rem; margin-bottom: 0.3rem; }
.att-explorer .att-controls { display: flex; flex-wrap: wrap; gap: 0.5rem 1.4rem; align-items: end; }
.att-explorer .att-slider { display: flex; flex-direction: column; flex: 1 1 11rem; min-width: 0; }
.att-explorer input[type="range"] { width: 100%; min-height: 24px; accent-color: #2f7fd6; }
.att-explorer .att-check { display: inline-flex; gap: 0.45rem; align-items: center; min-height: 24px; }
.att-explorer input[type="checkbox"] { width: 18px; height: 18px; accent-color: #2f7fd6; }
.att-explorer .att-scroll { overflow-x: auto; margin-top: 0.4rem; }
.att-explorer table { border-collapse: collapse; width: 100%; margin: 0; font-size: 0.85rem; font-variant-numeric: tabular-nums; color: var(--pst-color-text-base, inherit); }
.att-explorer caption { caption-side: top; text-align: left; color: var(--pst-color-text-base, inherit); padding: 0 0 0.3rem; }
.att-explorer th, .att-explorer td { padding: 0.25rem 0.3rem; text-align: center; border: 1px solid var(--pst-color-border, #888); }
.att-explorer th { font-weight: 600; }
.att-explorer td.att-extra { border-left-width: 2px; }
.att-explorer .att-summary { margin: 0.7rem 0 0; }
`;

const NUMBERS_PER_TOKEN = 128;

function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// Standard normal numbers: one vector of NUMBERS_PER_TOKEN per token.
function drawVectors(count, random) {
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Array.from({ length: count }, () => Array.from({ length: NUMBERS_PER_TOKEN }, normal));
}

function dot(a, b, length) {
  let sum = 0;
  for (let i = 0; i < length; i += 1) sum += a[i] * b[i];
  return sum;
}

// Softmax of one row over the keys that may be seen; the others get weight 0.
function rowWeights(scores, seen) {
  const largest = Math.max(...scores.filter((_, j) => seen[j]));
  const parts = scores.map((score, j) => (seen[j] ? Math.exp(score - largest) : 0));
  const total = parts.reduce((a, b) => a + b, 0);
  return parts.map((part) => part / total);
}

const entropy = (weights) => weights.reduce((sum, w) => (w > 0 ? sum - w * Math.log2(w) : sum), 0);
const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;

function deviation(numbers) {
  const centre = mean(numbers);
  return Math.sqrt(mean(numbers.map((number) => (number - centre) ** 2)));
}

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export default {
  render({ model, el }) {
    const tokens = model.get("tokens");
    const real = model.get("real");
    const sizes = model.get("sizes");
    const random = generator(model.get("seed"));
    const queries = drawVectors(tokens.length, random);
    const keys = drawVectors(tokens.length, random);
    const temperatures = [0.25, 0.5, 1, 2, 4, 5.66, 8, 11.3, 16];

    const slider = (text, values, start) => {
      const shown = element("span");
      const input = element("input", { type: "range", min: 0, max: values.length - 1, step: 1 });
      input.value = values.indexOf(start);
      const label = element("label", { className: "att-slider" }, element("span", {}, text, " = ", shown), input);
      const read = () => values[Number(input.value)];
      const tell = () => {
        shown.textContent = String(read());
        input.setAttribute("aria-valuetext", String(read()));
      };
      return { label, input, read, tell };
    };
    const checkbox = (text, checked) => {
      const input = element("input", { type: "checkbox", checked });
      return { label: element("label", { className: "att-check" }, input, text), input };
    };

    const size = slider("d_k", sizes, 8);
    const temperature = slider("temperature", temperatures, 1);
    const scale = checkbox("divide by √d_k", true);
    const causal = checkbox("causal mask", false);
    const padding = checkbox("hide padding", false);
    const controls = [size, temperature, scale, causal, padding];

    const body = element("tbody");
    const header = element("tr", {}, element("th", { scope: "col" }, "query ↓ key →"));
    for (const token of tokens) header.append(element("th", { scope: "col" }, token));
    header.append(element("th", { scope: "col" }, "sum"), element("th", { scope: "col" }, "entropy, bits"));
    const table = element(
      "table",
      {},
      element("caption", {}, "Attention weights, one row per query; a dash is a hidden key"),
      element("thead", {}, header),
      body,
    );
    const scroll = element("div", { className: "att-scroll", tabIndex: 0 }, table);
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Table of attention weights");
    const summary = element("p", { className: "att-summary" });
    summary.setAttribute("aria-live", "polite");

    const draw = () => {
      const length = size.read();
      const divisor = (scale.input.checked ? Math.sqrt(length) : 1) * temperature.read();
      const entropies = [];
      const largest = [];
      const visible = [];
      body.replaceChildren();
      tokens.forEach((token, i) => {
        const seen = tokens.map((_, j) => (!causal.input.checked || j <= i) && (!padding.input.checked || j < real));
        const scores = keys.map((key) => dot(queries[i], key, length) / divisor);
        const weights = rowWeights(scores, seen);
        visible.push(...scores.filter((_, j) => seen[j]));
        entropies.push(entropy(weights));
        largest.push(Math.max(...weights));
        const row = element("tr", {}, element("th", { scope: "row" }, token));
        weights.forEach((weight, j) => {
          const cell = element("td", {}, seen[j] ? weight.toFixed(2) : "–");
          if (seen[j]) cell.style.background = `rgba(47, 127, 214, ${(0.55 * weight).toFixed(3)})`;
          else cell.setAttribute("aria-label", "hidden");
          row.append(cell);
        });
        const sum = weights.reduce((a, b) => a + b, 0);
        row.append(
          element("td", { className: "att-extra" }, sum.toFixed(2)),
          element("td", {}, Math.abs(entropies[i]).toFixed(2)),
        );
        body.append(row);
      });
      const most = Math.log2(tokens.length).toFixed(2);
      summary.textContent =
        `Mean entropy of the rows ${mean(entropies).toFixed(2)} bits (${most} if all ${tokens.length} keys counted alike); ` +
        `mean largest weight ${mean(largest).toFixed(2)}; ` +
        `spread (standard deviation) of what enters the softmax ${deviation(visible).toFixed(2)}.`;
      for (const control of [size, temperature]) control.tell();
    };

    for (const { input } of controls) input.addEventListener("input", draw);
    const box = element(
      "div",
      { className: "att-explorer" },
      element("style", {}, STYLE),
      element(
        "fieldset",
        {},
        element("legend", {}, "Attention explorer"),
        element("div", { className: "att-controls" }, ...controls.map((control) => control.label)),
      ),
      scroll,
      summary,
    );
    el.append(box);
    draw();
  },
};
