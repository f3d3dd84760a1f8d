// What each target position may attend to, step by step, and what its output depends on after
// several layers. A real table, so that every cell can be read and spoken.

const STYLE = `
.dec { color: var(--pst-color-text-base, inherit); }
.dec fieldset { border: 0; margin: 0; padding: 0; min-width: 0; }
.dec legend { font-weight: 600; font-size: 1rem; float: none; width: auto; margin: 0 0 0.3rem; padding: 0; }
.dec .dec-controls { display: grid; gap: 0.8rem 1.6rem; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); }
.dec .dec-slider { display: flex; flex-direction: column; min-width: 0; }
.dec input[type="range"] { width: 100%; min-height: 24px; accent-color: var(--pst-color-primary, #3a4fa3); }
.dec .dec-check { display: flex; gap: 0.45rem; align-items: center; min-height: 24px; }
.dec input[type="radio"], .dec input[type="checkbox"] { width: 18px; height: 18px; margin: 0; accent-color: var(--pst-color-primary, #3a4fa3); }
.dec .dec-scroll { overflow-x: auto; margin-top: 0.8rem; }
.dec table { border-collapse: collapse; width: 100%; margin: 0; font-size: 0.88rem; color: inherit; }
.dec caption { caption-side: top; text-align: left; color: inherit; padding: 0 0 0.3rem; }
.dec th, .dec td { padding: 0.3rem 0.35rem; text-align: center; border: 1px solid var(--pst-color-border, #888); }
.dec th { font-weight: 600; white-space: nowrap; }
.dec th[scope="row"] { text-align: left; position: sticky; left: 0; background: var(--pst-color-background, Canvas); }
.dec .dec-source { border-left: 3px solid var(--pst-color-text-muted, #666); }
.dec td.dec-direct { background: rgba(47, 127, 214, 0.4); }
.dec td.dec-carried { background: rgba(47, 127, 214, 0.16); }
.dec td.dec-leak { background: rgba(214, 90, 20, 0.4); font-weight: 700; }
.dec tr.dec-now > * { border-top: 3px solid var(--pst-color-primary, #3a4fa3); border-bottom: 3px solid var(--pst-color-primary, #3a4fa3); }
.dec .dec-key { margin: 0.5rem 0 0; font-size: 0.88rem; }
.dec .dec-summary { margin: 0.7rem 0 0; }
`;

const RULES = [
  { name: "causal: key j ≤ query i", sees: (i, j) => j <= i },
  { name: "one step too wide: j ≤ i + 1", sees: (i, j) => j <= i + 1 },
  { name: "no mask", sees: () => true },
];

// Which target tokens (columns) an output (row) depends on after some layers.
function reach(count, sees, layers) {
  const step = Array.from({ length: count }, (_, i) => Array.from({ length: count }, (_, j) => sees(i, j)));
  let total = step;
  for (let layer = 1; layer < layers; layer += 1) {
    total = step.map((row) => total[0].map((_, j) => row.some((yes, k) => yes && total[k][j])));
  }
  return { step, total };
}

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const listed = (words) =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;

export default {
  render({ model, el }) {
    const source = model.get("source");
    const target = model.get("target");
    const labels = model.get("labels");
    const pad = model.get("pad");
    const group = `dec-rule-${Math.random().toString(36).slice(2)}`;

    const slider = (text, least, most, start) => {
      const shown = element("span");
      const input = element("input", { type: "range", min: least, max: most, step: 1 });
      input.value = start;
      const label = element("label", { className: "dec-slider" }, element("span", {}, text, ": ", shown), input);
      return { label, input, shown, read: () => Number(input.value) };
    };
    const position = slider("position of the query", 0, target.length - 1, 0);
    const layers = slider("layers", 1, 6, 1);
    const radios = RULES.map((rule, i) => {
      const input = element("input", { type: "radio", name: group, checked: i === 0 });
      return { label: element("label", { className: "dec-check" }, input, rule.name), input };
    });
    const hide = element("input", { type: "checkbox", checked: true });
    const rules = element(
      "fieldset",
      {},
      element("legend", {}, "mask of the self-attention"),
      ...radios.map((radio) => radio.label),
    );

    const columns = [...target, ...source];
    const groups = element(
      "tr",
      {},
      element("td"),
      element("th", { scope: "colgroup", colSpan: target.length }, "target, so far and later"),
      element("th", { scope: "colgroup", colSpan: source.length, className: "dec-source" }, "source"),
    );
    const names = element("tr", {}, element("th", { scope: "col" }, "reads → predicts"));
    columns.forEach((token, j) => {
      names.append(element("th", { scope: "col", className: j === target.length ? "dec-source" : "" }, token));
    });
    const caption = element("caption");
    const body = element("tbody");
    const table = element("table", {}, caption, element("thead", {}, groups, names), body);
    const scroll = element("div", { className: "dec-scroll", tabIndex: 0 }, table);
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Table of what each target position may attend to");
    const key = element(
      "p",
      { className: "dec-key" },
      "✓ attended to directly · ↺ reaches the row through other rows, in an earlier layer · ! a later token: a leak · – hidden",
    );
    const summary = element("p", { className: "dec-summary" });
    summary.setAttribute("aria-live", "polite");

    const cellFor = (direct, reached, future) => {
      if (!reached) return { sign: "–", name: "", said: "hidden" };
      if (future) return { sign: direct ? "✓!" : "↺!", name: "dec-leak", said: "leak" };
      return direct
        ? { sign: "✓", name: "dec-direct", said: "attended to" }
        : { sign: "↺", name: "dec-carried", said: "carried" };
    };

    const draw = () => {
      const depth = layers.read();
      const now = position.read();
      const rule = RULES[radios.findIndex((radio) => radio.input.checked)];
      const { step, total } = reach(target.length, rule.sees, depth);
      position.shown.textContent = `${now} (${target[now]})`;
      position.input.setAttribute("aria-valuetext", `${now}, ${target[now]}`);
      layers.shown.textContent = String(depth);
      caption.textContent =
        depth === 1
          ? "What each row may attend to"
          : `What each row depends on, ${depth} layers`;
      body.replaceChildren();
      target.forEach((token, i) => {
        const row = element("tr", { className: i === now ? "dec-now" : "" });
        row.append(element("th", { scope: "row" }, `${token} → ${labels[i]}`));
        target.forEach((_, j) => {
          const { sign, name, said } = cellFor(step[i][j], total[i][j], j > i);
          const cell = element("td", { className: name }, sign);
          cell.setAttribute("aria-label", said);
          row.append(cell);
        });
        source.forEach((word, j) => {
          const seen = !hide.checked || word !== pad;
          const { sign, name, said } = cellFor(seen, seen, false);
          const cell = element("td", { className: `${name}${j === 0 ? " dec-source" : ""}` }, sign);
          cell.setAttribute("aria-label", said);
          row.append(cell);
        });
        body.append(row);
      });
      const own = target.filter((_, j) => j <= now && total[now][j]);
      const later = target.filter((_, j) => j > now && total[now][j]);
      const read = source.filter((word) => !hide.checked || word !== pad);
      const padding = read.includes(pad) ? " Padding is read as if it were a word." : "";
      const leak = later.length
        ? ` But ${listed(later)} ${later.length > 1 ? "reach" : "reaches"} it too` +
          (total[now][now + 1] ? `: the answer ${labels[now]} is among what it has read.` : ".")
        : " Nothing later reaches it.";
      const away = target.map((_, i) => total[i].some((yes, j) => yes && j > i)).filter(Boolean).length;
      const all = away ? `${away} of ${target.length} rows see the future.` : "No row sees the future.";
      summary.textContent =
        `Row ${now} has ${target[now]} as input and must predict ${labels[now]}, from ${listed(own)} ` +
        `and from the source: ${listed(read)}.${padding}${leak} ${all}`;
    };

    for (const input of [position.input, layers.input, hide, ...radios.map((radio) => radio.input)]) {
      input.addEventListener("input", draw);
    }
    const controls = element(
      "div",
      { className: "dec-controls" },
      position.label,
      layers.label,
      rules,
      element("label", { className: "dec-check" }, hide, "hide the source's padding"),
    );
    el.append(element("div", { className: "dec" }, element("style", {}, STYLE), controls, scroll, key, summary));
    draw();
  },
};
