// What a span does to the weights of one query: a factor for each distance, and what is left of equal
// scores. A table of bars, so that every number can be read and spoken.

const STYLE = `
.spn { color: var(--pst-color-text-base, inherit); }
.spn .spn-sliders { display: grid; gap: 0.3rem 1rem; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); }
.spn label { display: flex; flex-direction: column; }
.spn input[type="range"] { width: 100%; min-height: 24px; accent-color: var(--pst-color-primary, #3a4fa3); }
.spn table { border-collapse: collapse; width: 100%; margin: 0.8rem 0 0; font-size: 0.9rem; color: inherit; }
.spn th, .spn td { padding: 0.2rem 0.45rem; text-align: left; border: 0; border-bottom: 1px solid var(--pst-color-border, #888); font-variant-numeric: tabular-nums; }
.spn td.spn-share { width: 50%; }
.spn .spn-bar { display: inline-block; height: 0.8rem; margin-right: 0.5rem; vertical-align: middle; border-radius: 3px; background: rgba(47, 127, 214, 0.55); }
.spn tr.spn-out th { text-decoration: line-through; font-weight: 400; }
.spn .spn-summary { margin: 0.7rem 0 0; font-weight: 600; }
`;

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export default {
  render({ model, el }) {
    const [count, far] = [model.get("tokens"), model.get("match")];
    const body = element("tbody");
    const summary = element("p", { className: "spn-summary" });
    summary.setAttribute("aria-live", "polite");
    const inputs = [];
    const slider = (text, settings) => {
      const shown = element("span");
      const input = element("input", { type: "range", ...settings });
      const show = () => { shown.textContent = Number(input.value).toFixed(1); };
      input.addEventListener("input", () => { show(); draw(); });
      show();
      inputs.push(input);
      return element("label", {}, element("span", {}, `${text}: `, shown), input);
    };
    const draw = () => {
      const [z, ramp, score] = inputs.map((input) => Number(input.value));
      const distances = Array.from({ length: count }, (_, distance) => distance);
      const factors = distances.map((d) => Math.min(1, Math.max(0, (ramp + z - d) / ramp)));
      const parts = factors.map((factor, d) => factor * Math.exp(d === far ? score : 0));
      const sum = parts.reduce((total, part) => total + part, 0);
      body.replaceChildren(
        ...distances.map((d) => {
          const bar = element("span", { className: "spn-bar" });
          bar.style.width = `${70 * (parts[d] / sum)}%`;
          const row = element(
            "tr",
            {},
            element("th", { scope: "row" }, d === far ? `${d} (the match)` : `${d}`),
            element("td", {}, factors[d].toFixed(2)),
            element("td", { className: "spn-share" }, bar, (parts[d] / sum).toFixed(3)),
          );
          row.className = factors[d] > 0 ? "" : "spn-out";
          return row;
        }),
      );
      const kept = factors.filter((factor) => factor > 0).length;
      summary.textContent =
        `${kept} of ${count} keys are read; the match at distance ${far} gets the weight ` +
        `${(parts[far] / sum).toFixed(3)}.`;
    };
    const sliders = element(
      "div",
      { className: "spn-sliders" },
      slider("span z", { min: 0, max: count, step: 0.5, value: 3 }),
      slider("ramp R", { min: 1, max: 8, step: 0.5, value: 4 }),
      slider("score of the match", { min: 0, max: 8, step: 0.5, value: 0 }),
    );
    const head = element(
      "tr",
      {},
      ...["distance", "factor", "weight"].map((text) => element("th", { scope: "col" }, text)),
    );
    el.append(
      element("style", {}, STYLE),
      element("div", { className: "spn" }, sliders, element("table", {}, element("thead", {}, head), body), summary),
    );
    draw();
  },
};
