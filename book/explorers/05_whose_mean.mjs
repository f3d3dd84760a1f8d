// One token as bars, before and after normalising, and a table that marks the numbers which share
// a mean with the framed one: those of a token, of a feature, or of a feature in one sentence.

const SVG = "http://www.w3.org/2000/svg";
const EPSILONS = [0, 0.00001, 0.1, 1, 10];
const KINDS = [
  ["layer", "LayerNorm: the features of this token"],
  ["batch", "BatchNorm: this feature, all tokens of all sentences"],
  ["instance", "InstanceNorm: this feature, the tokens of this sentence"],
];

const STYLE = `
.wm { color: var(--pst-color-text-base, #1c2126); }
.wm fieldset { border: 0; margin: 0 0 0.7rem; padding: 0; min-width: 0; }
.wm legend { font-weight: 600; font-size: 1rem; margin-bottom: 0.3rem; }
.wm .wm-sliders { display: grid; gap: 0.3rem 1rem; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); }
.wm label.wm-slider { display: flex; flex-direction: column; }
.wm input[type="range"] { width: 100%; min-height: 24px; accent-color: #2f7fd6; }
.wm label.wm-kind { display: flex; gap: 0.5rem; align-items: center; min-height: 26px; }
.wm input[type="radio"] { width: 18px; height: 18px; flex: none; accent-color: #2f7fd6; }
.wm svg { display: block; width: 100%; max-width: 30rem; height: auto; margin: 0.4rem 0; }
.wm svg text { fill: var(--pst-color-text-base, #1c2126); font-size: 15px; }
.wm .wm-axis { stroke: var(--pst-color-text-base, #1c2126); stroke-width: 1; }
.wm .wm-in { fill: none; stroke: var(--pst-color-text-base, #1c2126); stroke-width: 2; stroke-dasharray: 4 3; }
.wm .wm-out { fill: #2f7fd6; }
.wm .wm-scroll { overflow-x: auto; }
.wm table { border-collapse: separate; border-spacing: 1px; margin: 0; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
.wm caption { caption-side: top; text-align: left; color: var(--pst-color-text-base, #1c2126); padding: 0 0 0.3rem; }
.wm th, .wm td { padding: 0.2rem 0.25rem; min-width: 2.6rem; text-align: right; border: 1px solid var(--pst-color-border, #888); white-space: nowrap; }
.wm th { font-weight: 600; text-align: right; white-space: normal; }
.wm td.wm-group { background: rgba(47, 127, 214, 0.28); font-weight: 700; }
.wm td.wm-framed { outline: 3px solid var(--pst-color-text-base, #1c2126); outline-offset: -3px; }
.wm .wm-summary { margin: 0.7rem 0 0; }
`;

function make(name, attributes = {}, children = []) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function draw(name, attributes = {}, children = []) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function fixed(value, digits = 2) {
  if (Number.isNaN(value)) return "0/0";
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? (0).toFixed(digits) : text).replace("-", "−");
}

function slider(text, attributes, tell, onInput) {
  const value = make("span");
  const input = make("input", { type: "range", ...attributes });
  const get = () => tell(Number(input.value));
  const show = () => {
    value.textContent = String(get()).replace("-", "−");
    input.setAttribute("aria-valuetext", String(get()));
  };
  input.addEventListener("input", () => { show(); onInput(); });
  show();
  return { element: make("label", { class: "wm-slider" }, [make("span", {}, [`${text} = `, value]), input]), get };
}

// Positions [sentence, token, feature] of all numbers that share a mean with the one given.
function group(kind, tokens, [sentence, token, feature]) {
  const members = [];
  tokens.forEach((rows, b) => rows.forEach((row, i) => row.forEach((_, j) => {
    const inside = {
      layer: b === sentence && i === token,
      batch: j === feature,
      instance: b === sentence && j === feature,
    }[kind];
    if (inside) members.push([b, i, j]);
  })));
  return members;
}

function statistics(kind, tokens, place) {
  const values = group(kind, tokens, place).map(([b, i, j]) => tokens[b][i][j]);
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length;
  return { mean, variance, count: values.length };
}

// Two bars for each feature: as it came in (dashed outline) and as it goes out (filled).
function bars(before, after) {
  const [middle, step, reach] = [95, 100, 80];
  const height = (value) => Math.max(-reach, Math.min(reach, (value * reach) / 6));
  const bar = (x, value, extra) => draw("rect", {
    x, y: middle - Math.max(height(value), 0), width: 28, height: Math.max(Math.abs(height(value)), 1), class: extra,
  });
  const parts = [draw("line", { x1: 0, x2: 4 * step, y1: middle, y2: middle, class: "wm-axis" })];
  before.forEach((value, j) => {
    const x = j * step + 16;
    parts.push(bar(x, value, "wm-in"));
    if (!Number.isNaN(after[j])) parts.push(bar(x + 38, after[j], "wm-out"));
    const label = draw("text", { x: x + 34, y: 200, "text-anchor": "middle" });
    label.textContent = `${fixed(value, 1)} → ${fixed(after[j])}`;
    parts.push(label);
  });
  const text = before.map((value, j) => `feature ${j}: ${fixed(value, 1)} becomes ${fixed(after[j])}`).join("; ");
  return draw("svg", { viewBox: `0 0 ${4 * step} 210`, role: "img", "aria-label": `Bars, the token before and after. ${text}.` }, parts);
}

export default {
  render({ model, el }) {
    const start = model.get("tokens"); // [sentence][token][feature]
    const place = [0, 0, 0];
    const picture = make("div");
    const scroll = make("div", { class: "wm-scroll", tabindex: "0", role: "region", "aria-label": "Table of all numbers" });
    const summary = make("p", { class: "wm-summary", "aria-live": "polite" });
    let kind = "layer";
    let ready = false;
    const update = () => { if (ready) show(); };

    const values = start[0][0].map((value, j) => slider(
      `feature ${j}`, { min: -4, max: 6, step: 0.5, value }, (v) => v, update,
    ));
    const gain = slider("gain", { min: -2, max: 3, step: 0.5, value: 1 }, (v) => v, update);
    const bias = slider("bias", { min: -3, max: 3, step: 0.5, value: 0 }, (v) => v, update);
    const eps = slider("eps", { min: 0, max: EPSILONS.length - 1, step: 1, value: 1 }, (v) => EPSILONS[v], update);

    const name = `wm-kind-${Math.random().toString(36).slice(2)}`;
    const radios = KINDS.map(([value, text]) => {
      const input = make("input", { type: "radio", name, value });
      input.checked = value === kind;
      input.addEventListener("change", () => { kind = value; update(); });
      return make("label", { class: "wm-kind" }, [input, text]);
    });

    function table(tokens) {
      const inGroup = new Set(group(kind, tokens, place).map(String));
      const head = make("tr", {}, ["sentence, token", ...tokens[0][0].map((_, j) => `${j}`)].map((text) => make("th", { scope: "col" }, [text])));
      const rows = tokens.flatMap((sentence, b) => sentence.map((row, i) => make("tr", {}, [
        make("th", { scope: "row" }, [`${b}, ${i}`]),
        ...row.map((value, j) => {
          const member = inGroup.has(String([b, i, j]));
          const framed = String([b, i, j]) === String(place);
          const cell = make("td", {}, [`${member ? "✓ " : ""}${fixed(value, 1)}`]);
          cell.classList.toggle("wm-group", member);
          cell.classList.toggle("wm-framed", framed);
          if (member) cell.setAttribute("aria-label", `${fixed(value, 1)}, shares the mean${framed ? ", the framed number" : ""}`);
          return cell;
        }),
      ])));
      return make("table", {}, [
        make("caption", {}, ["Columns are features. ✓ marks the numbers that share a mean with the framed one."]),
        make("thead", {}, [head]),
        make("tbody", {}, rows),
      ]);
    }

    function show() {
      const tokens = start.map((sentence) => sentence.map((row) => [...row]));
      tokens[0][0] = values.map((value) => value.get());
      const after = tokens[0][0].map((value, j) => {
        const { mean, variance } = statistics(kind, tokens, [0, 0, j]);
        const normalised = (value - mean) / Math.sqrt(variance + eps.get()); // 0/0 is NaN
        return gain.get() * normalised + bias.get();
      });
      picture.replaceChildren(bars(tokens[0][0], after));
      scroll.replaceChildren(table(tokens));
      const { mean, variance, count } = statistics(kind, tokens, place);
      summary.textContent =
        `The framed number shares its mean with ${count - 1} others: mean ${fixed(mean)}, variance ${fixed(variance)}. ` +
        `The token's outputs are ${after.map((value) => fixed(value)).join(", ")}.`;
    }

    el.append(make("div", { class: "wm" }, [
      make("style", {}, [STYLE]),
      make("fieldset", {}, [
        make("legend", {}, ["Token 0 of sentence 0"]),
        make("div", { class: "wm-sliders" }, values.map((value) => value.element)),
      ]),
      make("fieldset", {}, [
        make("legend", {}, ["Whose mean?"]),
        ...radios,
        make("div", { class: "wm-sliders" }, [gain.element, bias.element, eps.element]),
      ]),
      make("p", {}, ["Dashed outline: what came in. Filled: what goes out."]),
      picture,
      scroll,
      summary,
    ]));
    ready = true;
    show();
  },
};
