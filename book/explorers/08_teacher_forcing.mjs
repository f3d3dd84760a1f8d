// One target sentence under teacher forcing: what each position reads, what it should say, and what
// it costs, with label smoothing and the treatment of padding in the reader's hands.

const STYLE = `
.tf-explorer { color: var(--pst-color-text-base, inherit); }
.tf-explorer fieldset { border: 0; margin: 0 0 0.6rem; padding: 0; min-width: 0; }
.tf-explorer legend { font-weight: 600; font-size: 1rem; margin-bottom: 0.3rem; }
.tf-explorer .tf-controls { display: flex; flex-wrap: wrap; gap: 0.5rem 1.4rem; align-items: end; }
.tf-explorer .tf-slider { display: flex; flex-direction: column; flex: 1 1 11rem; min-width: 0; }
.tf-explorer input[type="range"] { width: 100%; min-height: 24px; accent-color: #2f7fd6; }
.tf-explorer .tf-check { display: inline-flex; gap: 0.45rem; align-items: center; min-height: 24px; }
.tf-explorer input[type="checkbox"] { width: 18px; height: 18px; accent-color: #2f7fd6; }
.tf-explorer .tf-scroll { overflow-x: auto; margin-top: 0.5rem; }
.tf-explorer table { border-collapse: collapse; width: 100%; margin: 0; font-size: 0.85rem; font-variant-numeric: tabular-nums; color: var(--pst-color-text-base, inherit); }
.tf-explorer caption { caption-side: top; text-align: left; color: var(--pst-color-text-base, inherit); padding: 0 0 0.3rem; }
.tf-explorer th, .tf-explorer td { padding: 0.2rem 0.3rem; text-align: center; border: 1px solid var(--pst-color-border, #888); }
.tf-explorer th { font-weight: 600; }
.tf-explorer tr.tf-chosen > * { border-top: 3px solid #2f7fd6; border-bottom: 3px solid #2f7fd6; }
.tf-explorer td.tf-seen { background: rgba(47, 127, 214, 0.25); }
.tf-explorer .tf-summary { margin: 0.7rem 0 0; }
`;

// Log-probabilities of one row of logits.
function logSoftmax(logits) {
  const largest = Math.max(...logits);
  const norm = largest + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0));
  return logits.map((logit) => logit - norm);
}

// The smoothed target: what is left on the label, and an even share for every class.
const smoothed = (label, classes, epsilon) =>
  Array.from({ length: classes }, (_, v) => (v === label ? 1 - epsilon : 0) + epsilon / classes);

const crossEntropy = (target, logP) => -target.reduce((sum, q, v) => sum + q * logP[v], 0);
const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function headed(...names) {
  return element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)));
}

function scrolling(table, label) {
  const box = element("div", { className: "tf-scroll", tabIndex: 0 }, table);
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", label);
  return box;
}

export default {
  render({ model, el }) {
    const vocabulary = model.get("vocabulary");
    const source = model.get("source");
    const input = model.get("input");
    const labels = model.get("labels");
    const logP = model.get("logits").map(logSoftmax);
    const pad = vocabulary[model.get("pad")];

    const slider = (text, max, step, start, format) => {
      const shown = element("span");
      const control = element("input", { type: "range", min: 0, max, step, value: start });
      const label = element("label", { className: "tf-slider" }, element("span", {}, text, " = ", shown), control);
      const tell = () => {
        shown.textContent = format(Number(control.value));
        control.setAttribute("aria-valuetext", format(Number(control.value)));
      };
      return { label, control, tell };
    };
    const position = slider("position", labels.length - 1, 1, 1, (value) => `${value}, reads ${input[value]}`);
    const smoothing = slider("label smoothing ε", 0.5, 0.05, 0, (value) => value.toFixed(2));
    const counted = element("input", { type: "checkbox" });
    const check = element("label", { className: "tf-check" }, counted, "count padding in the mean");

    const rows = element("tbody");
    const sentence = element(
      "table",
      {},
      element("caption", {}, `Source: ${source}. p is that of the label; shaded tokens are seen from the chosen place t`),
      element("thead", {}, headed("t", "reads", "label", "p", "loss", "in mean")),
      rows,
    );
    const caption = element("caption");
    const classes = element("tbody");
    const distribution = element(
      "table",
      {},
      caption,
      element("thead", {}, headed("token", "model's p", "target q")),
      classes,
    );
    const summary = element("p", { className: "tf-summary" });
    summary.setAttribute("aria-live", "polite");

    const draw = () => {
      const chosen = Number(position.control.value);
      const epsilon = Number(smoothing.control.value);
      const targets = labels.map((label) => smoothed(vocabulary.indexOf(label), vocabulary.length, epsilon));
      const losses = targets.map((target, t) => crossEntropy(target, logP[t]));
      const inMean = labels.map((label) => counted.checked || label !== pad);
      rows.replaceChildren(
        ...labels.map((label, t) => {
          const seen = t <= chosen && input[t] !== pad;
          const read = element("td", { className: seen ? "tf-seen" : "" }, input[t]);
          read.setAttribute("aria-label", `${input[t]}, ${seen ? "seen" : "hidden"}`);
          return element(
            "tr",
            { className: t === chosen ? "tf-chosen" : "" },
            element("th", { scope: "row" }, String(t)),
            read,
            element("td", {}, label),
            element("td", {}, Math.exp(logP[t][vocabulary.indexOf(label)]).toFixed(3)),
            element("td", {}, losses[t].toFixed(3)),
            element("td", {}, inMean[t] ? "yes" : "no"),
          );
        }),
      );
      caption.textContent = `Position ${chosen}: what the model says, and what it is compared with`;
      classes.replaceChildren(
        ...vocabulary.map((token, v) =>
          element(
            "tr",
            {},
            element("th", { scope: "row" }, token),
            element("td", {}, Math.exp(logP[chosen][v]).toFixed(3)),
            element("td", {}, targets[chosen][v].toFixed(3)),
          ),
        ),
      );
      const entropy = -targets[0].reduce((sum, q) => (q > 0 ? sum + q * Math.log(q) : sum), 0);
      const used = losses.filter((_, t) => inMean[t]);
      summary.textContent =
        `Loss of position ${chosen}: ${losses[chosen].toFixed(3)}. ` +
        `Mean over ${used.length} positions: ${mean(used).toFixed(3)}. ` +
        `No model can get below ${Math.abs(entropy).toFixed(3)} with this smoothing.`;
      for (const control of [position, smoothing]) control.tell();
    };

    for (const control of [position.control, smoothing.control, counted]) control.addEventListener("input", draw);
    el.append(
      element(
        "div",
        { className: "tf-explorer" },
        element("style", {}, STYLE),
        element(
          "fieldset",
          {},
          element("legend", {}, "Teacher forcing explorer"),
          element("div", { className: "tf-controls" }, position.label, smoothing.label, check),
        ),
        summary,
        scrolling(sentence, "Table of positions"),
        scrolling(distribution, "Table of probabilities"),
      ),
    );
    draw();
  },
};
