// Early stopping on a record of held-out losses: how long one waits decides where training stops and
// which weights are kept. A list of bars, so that every loss can be read and spoken.

const STYLE = `
.pat { color: var(--pst-color-text-base, inherit); }
.pat label { display: flex; flex-direction: column; max-width: 22rem; }
.pat input[type="range"] { width: 100%; min-height: 24px; accent-color: var(--pst-color-primary, #3a4fa3); }
.pat table { border-collapse: collapse; width: 100%; margin: 0.8rem 0 0; font-size: 0.9rem; color: inherit; }
.pat th, .pat td { padding: 0.2rem 0.45rem; text-align: left; border: 0; border-bottom: 1px solid var(--pst-color-border, #888); }
.pat td.pat-loss { width: 55%; }
.pat .pat-bar { display: inline-block; height: 0.8rem; margin-right: 0.5rem; vertical-align: middle; border-radius: 3px; background: rgba(47, 127, 214, 0.55); }
.pat tr.pat-unseen { text-decoration: line-through; }
.pat tr.pat-best { font-weight: 700; }
.pat .pat-summary { margin: 0.7rem 0 0; }
`;

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function choose(losses, patience) {
  let best = 0;
  for (let i = 0; i < losses.length; i += 1) {
    if (losses[i] < losses[best]) best = i;
    if (i - best >= patience) return [best, i];
  }
  return [best, losses.length - 1];
}

export default {
  render({ model, el }) {
    const losses = model.get("losses");
    const shown = element("span");
    const input = element("input", { type: "range", min: 1, max: losses.length - 1, step: 1, value: 1 });
    const body = element("tbody");
    const head = element(
      "tr",
      {},
      ...["record", "held-out loss", ""].map((text) => element("th", { scope: "col" }, text)),
    );
    const summary = element("p", { className: "pat-summary" });
    summary.setAttribute("aria-live", "polite");
    const draw = () => {
      const patience = Number(input.value);
      const [best, stopped] = choose(losses, patience);
      shown.textContent = patience;
      body.replaceChildren(
        ...losses.map((loss, i) => {
          const bar = element("span", { className: "pat-bar" });
          bar.style.width = `${(70 * loss) / Math.max(...losses)}%`;
          const says = i > stopped ? "never seen" : i === best ? "kept" : i === stopped ? "stop" : "";
          const row = element(
            "tr",
            {},
            element("th", { scope: "row" }, String(i)),
            element("td", { className: "pat-loss" }, bar, loss.toFixed(2)),
            element("td", {}, says),
          );
          row.className = i > stopped ? "pat-unseen" : i === best ? "pat-best" : "";
          return row;
        }),
      );
      summary.textContent =
        `Patience ${patience}: training stops at record ${stopped}; the weights of record ${best} ` +
        `are kept, with a loss of ${losses[best].toFixed(2)}.`;
    };
    input.addEventListener("input", draw);
    el.append(
      element("style", {}, STYLE),
      element(
        "div",
        { className: "pat" },
        element("label", {}, element("span", {}, "patience: ", shown), input),
        element("table", {}, element("thead", {}, head), body),
        summary,
      ),
    );
    draw();
  },
};
