// One small multi-head layer with random weights. The reader chooses width and heads, says what is
// split, and nudges one input feature; every number that moves is marked, head by head.

const STYLE = `
.heads-explorer { color: var(--pst-color-text-base, inherit); }
.heads-explorer fieldset { border: 0; margin: 0 0 0.4rem; padding: 0; min-width: 0; }
.heads-explorer legend { font-weight: 600; font-size: 1rem; margin-bottom: 0.3rem; }
.heads-explorer .heads-controls { display: flex; flex-wrap: wrap; gap: 0.5rem 1.2rem; align-items: end; }
.heads-explorer .heads-field { display: flex; flex-direction: column; min-width: 0; }
.heads-explorer select { min-height: 28px; font: inherit; color: var(--pst-color-text-base, inherit); background: var(--pst-color-background, transparent); border: 1px solid var(--pst-color-border, #888); border-radius: 4px; padding: 0.1rem 0.3rem; }
.heads-explorer .heads-check { display: inline-flex; gap: 0.45rem; align-items: center; min-height: 24px; }
.heads-explorer input[type="checkbox"] { width: 18px; height: 18px; accent-color: #2f7fd6; }
.heads-explorer .heads-scroll { overflow-x: auto; margin-top: 0.2rem; }
.heads-explorer .heads-tables { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; }
.heads-explorer .heads-tables > div { min-width: 0; max-width: 100%; }
.heads-explorer table { border-collapse: collapse; width: auto; margin: 0; font-size: 0.82rem; font-variant-numeric: tabular-nums; color: var(--pst-color-text-base, inherit); }
.heads-explorer .heads-caption { font-size: 0.85rem; margin-top: 0.6rem; }
.heads-explorer th, .heads-explorer td { padding: 0.2rem 0.35rem; text-align: center; white-space: nowrap; border: 1px solid var(--pst-color-border, #888); }
.heads-explorer th { font-weight: 600; }
.heads-explorer .heads-moved { font-weight: 700; text-decoration: underline; text-underline-offset: 2px; }
.heads-explorer .heads-first { border-left: 3px solid var(--pst-color-text-base, #222); }
.heads-explorer .heads-summary { margin: 0.7rem 0 0; }
`;

const BANDS = ["47, 127, 214", "226, 124, 20", "24, 158, 116", "186, 85, 190", "150, 130, 20", "200, 70, 70"];

function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function normalMatrix(rows, columns, random) {
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Array.from({ length: rows }, () => Array.from({ length: columns }, normal));
}

function multiply(a, b) {
  return a.map((row) => b[0].map((_, j) => row.reduce((sum, value, i) => sum + value * b[i][j], 0)));
}

const columnsOf = (matrix, from, to) => matrix.map((row) => row.slice(from, to));

function softmaxRow(scores) {
  const largest = Math.max(...scores);
  const parts = scores.map((score) => Math.exp(score - largest));
  const total = parts.reduce((a, b) => a + b, 0);
  return parts.map((part) => part / total);
}

// The whole layer; with slices, a weight that joins two heads' columns counts as 0.
function run(x, weights, heads, slices) {
  const width = x[0].length / heads;
  const scale = 1 / Math.sqrt(slices ? width : x[0].length);
  const head = (column) => Math.floor(column / width);
  const project = (matrix) =>
    multiply(x, matrix.map((row, i) => row.map((w, j) => (slices && head(i) !== head(j) ? 0 : w * scale))));
  const [q, k, v] = weights.slice(0, 3).map(project);
  const tables = [];
  const results = [];
  for (let h = 0; h < heads; h += 1) {
    const own = (matrix) => columnsOf(matrix, h * width, (h + 1) * width);
    const [qh, kh, vh] = [q, k, v].map(own);
    const table = qh.map((query) =>
      softmaxRow(kh.map((key) => query.reduce((sum, value, c) => sum + value * key[c], 0) / Math.sqrt(width))),
    );
    tables.push(table);
    results.push(multiply(table, vh));
  }
  const sideBySide = x.map((_, i) => results.flatMap((result) => result[i]));
  return { q, tables, sideBySide };
}

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const minus = (text) => (Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−"));
const moved = (a, b) => Math.abs(a - b) > 1e-9;

export default {
  render({ model, el }) {
    const tokens = model.get("tokens");
    const seed = model.get("seed");

    const choice = (text, values, start, name) => {
      const select = element("select");
      for (const value of values) select.append(element("option", { value: String(value) }, name(value)));
      select.value = String(start);
      const label = element("label", { className: "heads-field" }, element("span", {}, text), select);
      return { label, select };
    };
    const width = choice("d_model", model.get("widths"), model.get("width"), String);
    const heads = choice("heads", model.get("heads"), model.get("start"), String);
    const order = choice("order", ["paper", "slices"], "paper", (value) =>
      value === "paper" ? "project, then split" : "split, then project",
    );
    const feature = choice("nudge column", [0], 0, String);
    const token = choice("of token", tokens.map((_, i) => i), 1, (i) => tokens[i]);
    const nudge = element("input", { type: "checkbox" });
    const nudgeLabel = element("label", { className: "heads-check" }, nudge, "nudge it by 1");

    const output = element("div");
    const summary = element("p", { className: "heads-summary" });
    summary.setAttribute("aria-live", "polite");

    // A table with one row per token; bands names the columns' heads, or is null.
    const table = (caption, values, before, columns, bandOf, shade) => {
      const header = element("tr", {}, element("th", { scope: "col" }, "token"));
      columns.forEach((column) => header.append(element("th", { scope: "col" }, column)));
      const head = element("thead", {}, header);
      const body = element("tbody");
      values.forEach((row, i) => {
        const line = element("tr", {}, element("th", { scope: "row" }, tokens[i]));
        row.forEach((value, j) => {
          const cell = element("td", {}, minus(value.toFixed(2)));
          const band = bandOf(j);
          if (band >= 0) cell.style.background = `rgba(${BANDS[band % BANDS.length]}, ${shade(value).toFixed(3)})`;
          if (j > 0 && band !== bandOf(j - 1)) cell.classList.add("heads-first");
          if (moved(value, before[i][j])) cell.classList.add("heads-moved");
          line.append(cell);
        });
        body.append(line);
      });
      const made = element("table", {}, head, body);
      made.setAttribute("aria-label", caption);
      const scroll = element("div", { className: "heads-scroll", tabIndex: 0 }, made);
      scroll.setAttribute("role", "region");
      scroll.setAttribute("aria-label", `${caption}, scrollable`);
      // outside the part that scrolls, so that a narrow screen shows all of it
      return element("div", {}, element("div", { className: "heads-caption" }, caption), scroll);
    };

    const draw = () => {
      const d = Number(width.select.value);
      const h = Number(heads.select.value);
      if (feature.select.options.length !== d) {
        const kept = Math.min(Number(feature.select.value), d - 1);
        feature.select.replaceChildren(
          ...Array.from({ length: d }, (_, i) => element("option", { value: String(i) }, String(i))),
        );
        feature.select.value = String(kept);
      }
      output.replaceChildren();
      if (d % h !== 0) {
        summary.textContent = `d_model (${d}) must be divisible by num_heads (${h}): ${d} columns cannot be shared out evenly.`;
        return;
      }
      const random = generator(seed);
      const x = normalMatrix(tokens.length, 12, random).map((row) => row.slice(0, d));
      const weights = [0, 1, 2].map(() => normalMatrix(12, 12, random).map((row) => row.slice(0, d)).slice(0, d));
      const slices = order.select.value === "slices";
      const before = run(x, weights, h, slices);
      const nudged = x.map((row) => [...row]);
      if (nudge.checked) nudged[Number(token.select.value)][Number(feature.select.value)] += 1;
      const after = run(nudged, weights, h, slices);
      const each = d / h;
      const band = (column) => Math.floor(column / each);
      const flat = () => 0.28;
      const names = Array.from({ length: d }, (_, i) => String(i));
      const headNames = names.map((_, i) => `head ${band(i)}`);
      output.append(
        table(
          slices ? "Input X, cut into slices" : "Input X, read whole by every head",
          nudged, x, names, slices ? band : () => -1, flat,
        ),
        table("Queries: each head's columns after the cut", after.q, before.q, headNames, band, flat),
      );
      const side = element("div", { className: "heads-tables" });
      after.tables.forEach((weightTable, i) => {
        const shade = (weight) => 0.08 + 0.5 * weight;
        side.append(
          element("div", {}, table(`Weights of head ${i}`, weightTable, before.tables[i], tokens, () => i, shade)),
        );
      });
      output.append(
        side,
        table("Results side by side, before the output projection", after.sideBySide, before.sideBySide, headNames, band, flat),
      );
      const noticed = after.tables
        .map((_, i) => i)
        .filter((i) => after.sideBySide.some((row, r) => row.some((value, c) => band(c) === i && moved(value, before.sideBySide[r][c]))));
      const perMap = slices ? h * each * each : d * d;
      const size = `${h} head${h > 1 ? "s" : ""} of width d_k = ${each}; ${perMap} weights in each of the three projections.`;
      const effect = nudge.checked
        ? ` Nudged: ${noticed.length} of ${h} head${h > 1 ? "s" : ""} noticed (${noticed.map((i) => `head ${i}`).join(", ")}); what moved is bold and underlined.`
        : "";
      summary.textContent = size + effect;
    };

    for (const { select } of [width, heads, order, feature, token]) select.addEventListener("change", draw);
    nudge.addEventListener("change", draw);
    el.append(
      element(
        "div",
        { className: "heads-explorer" },
        element("style", {}, STYLE),
        element(
          "fieldset",
          {},
          element("legend", {}, "Heads explorer"),
          element(
            "div",
            { className: "heads-controls" },
            width.label, heads.label, order.label, feature.label, token.label, nudgeLabel,
          ),
        ),
        summary,
        output,
      ),
    );
    draw();
  },
};
