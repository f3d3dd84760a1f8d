// What the next token is drawn from: temperature, top-k and top-p, in this order, on a few words.
// A table of bars, so that every probability can be read and spoken.

const STYLE = `
.smp { color: var(--pst-color-text-base, inherit); }
.smp .smp-sliders { display: grid; gap: 0.3rem 1rem; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); }
.smp label { display: flex; flex-direction: column; }
.smp input[type="range"] { width: 100%; min-height: 24px; accent-color: var(--pst-color-primary, #3a4fa3); }
.smp table { border-collapse: collapse; width: 100%; margin: 0.8rem 0 0; font-size: 0.9rem; color: inherit; }
.smp th, .smp td { padding: 0.2rem 0.45rem; text-align: left; border: 0; border-bottom: 1px solid var(--pst-color-border, #888); }
.smp td.smp-share { width: 55%; font-variant-numeric: tabular-nums; }
.smp .smp-bar { display: inline-block; height: 0.8rem; margin-right: 0.5rem; vertical-align: middle; border-radius: 3px; background: rgba(47, 127, 214, 0.55); }
.smp tr.smp-out th { text-decoration: line-through; font-weight: 400; }
.smp .smp-summary { margin: 0.7rem 0 0; font-weight: 600; }
`;

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function normalised(weights) {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

// Words are sorted, the likeliest first, so top-k and top-p each keep a beginning of the list.
function shaped(logits, temperature, k, p) {
  const scaled = logits.map((logit) => Math.exp((logit - logits[0]) / temperature));
  const left = normalised(scaled.map((weight, i) => (i < k ? weight : 0)));
  let before = 0;
  return normalised(left.map((share) => {
    const kept = before < p - 1e-12 ? share : 0;
    before += share;
    return kept;
  }));
}

export default {
  render({ model, el }) {
    const [words, logits] = [model.get("words"), model.get("logits")];
    const body = element("tbody");
    const summary = element("p", { className: "smp-summary" });
    summary.setAttribute("aria-live", "polite");
    const inputs = [];
    const slider = (text, settings, digits) => {
      const shown = element("span");
      const input = element("input", { type: "range", ...settings });
      const show = () => { shown.textContent = Number(input.value).toFixed(digits); };
      input.addEventListener("input", () => { show(); draw(); });
      show();
      inputs.push(input);
      return element("label", {}, element("span", {}, `${text}: `, shown), input);
    };
    const draw = () => {
      const [temperature, k, p] = inputs.map((input) => Number(input.value));
      const shares = shaped(logits, temperature, k, p);
      const kept = shares.filter((share) => share > 0).length;
      body.replaceChildren(
        ...shares.map((share, i) => {
          const bar = element("span", { className: "smp-bar" });
          bar.style.width = `${75 * share}%`;
          const row = element(
            "tr",
            {},
            element("th", { scope: "row" }, words[i]),
            element("td", { className: "smp-share" }, bar, share > 0 ? share.toFixed(3) : "never"),
          );
          row.className = share > 0 ? "" : "smp-out";
          return row;
        }),
      );
      const entropy = shares.reduce((sum, share) => sum - (share > 0 ? share * Math.log(share) : 0), 0);
      summary.textContent =
        `${kept} of ${words.length} words can be drawn; the choice is as uncertain as one ` +
        `among ${Math.exp(entropy).toFixed(1)} equally likely words.`;
    };
    const sliders = element(
      "div",
      { className: "smp-sliders" },
      slider("temperature", { min: 0.1, max: 3, step: 0.1, value: 1 }, 1),
      slider("top-k", { min: 1, max: words.length, step: 1, value: words.length }, 0),
      slider("top-p", { min: 0.05, max: 1, step: 0.05, value: 1 }, 2),
    );
    const head = element(
      "tr",
      {},
      ...["next word", "probability"].map((text) => element("th", { scope: "col" }, text)),
    );
    el.append(
      element("style", {}, STYLE),
      element("div", { className: "smp" }, sliders, element("table", {}, element("thead", {}, head), body), summary),
    );
    draw();
  },
};
