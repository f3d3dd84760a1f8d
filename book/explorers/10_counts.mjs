// How many numbers a Transformer learns, part by part. A real table, so that every count can be
// read and spoken; the bars beside the counts only repeat the shares.

const STYLE = `
.cnt { color: var(--pst-color-text-base, inherit); }
.cnt .cnt-controls { display: grid; gap: 0.8rem 1.6rem; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); }
.cnt .cnt-slider { display: flex; flex-direction: column; min-width: 0; }
.cnt input[type="range"] { width: 100%; min-height: 24px; accent-color: var(--pst-color-primary, #3a4fa3); }
.cnt .cnt-presets { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; margin-bottom: 0.8rem; }
.cnt button { min-height: 32px; padding: 0.2rem 0.8rem; border: 1px solid var(--pst-color-text-muted, #666); border-radius: 6px; background: var(--pst-color-surface, Canvas); color: inherit; font: inherit; cursor: pointer; }
.cnt button:focus-visible { outline: 3px solid var(--pst-color-primary, #3a4fa3); outline-offset: 2px; }
.cnt .cnt-check { display: flex; gap: 0.45rem; align-items: center; min-height: 24px; }
.cnt input[type="checkbox"] { width: 18px; height: 18px; margin: 0; accent-color: var(--pst-color-primary, #3a4fa3); }
.cnt .cnt-scroll { overflow-x: auto; margin-top: 0.8rem; }
.cnt table { border-collapse: collapse; width: 100%; margin: 0; font-size: 0.9rem; color: inherit; }
.cnt caption { caption-side: top; text-align: left; color: inherit; padding: 0 0 0.3rem; }
.cnt th, .cnt td { padding: 0.3rem 0.45rem; border: 1px solid var(--pst-color-border, #888); text-align: right; white-space: nowrap; }
.cnt th[scope="row"], .cnt thead th:first-child { text-align: left; font-weight: 600; white-space: normal; }
.cnt td.cnt-share { min-width: 6rem; position: relative; }
.cnt .cnt-bar { position: absolute; inset: 3px auto 3px 3px; background: rgba(47, 127, 214, 0.35); border-radius: 3px; }
.cnt .cnt-share span { position: relative; }
.cnt .cnt-summary { margin: 0.7rem 0 0; }
`;

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const grouped = (n) => n.toLocaleString("en-GB");

// The parts, for `layers` layers a side and one vocabulary.
function parts({ width, layers, inner, vocabulary, tied, preNorm }) {
  const norms = layers * 5 + (preNorm ? 2 : 0);
  return [
    { name: "self-attention, encoder", count: layers * 4 * width ** 2 },
    { name: "self-attention, decoder", count: layers * 4 * width ** 2 },
    { name: "cross-attention", count: layers * 4 * width ** 2 },
    { name: "feed-forward networks", count: layers * 2 * (2 * width * inner + inner + width) },
    { name: "layer norms", count: norms * 2 * width },
    {
      name: tied ? "embeddings and output: one matrix" : "embeddings and output: three matrices",
      count: (tied ? 1 : 3) * vocabulary * width,
    },
  ];
}

export default {
  render({ model, el }) {
    const presets = model.get("presets");
    const slider = (text, least, most, step) => {
      const shown = element("span");
      const input = element("input", { type: "range", min: least, max: most, step });
      const label = element("label", { className: "cnt-slider" }, element("span", {}, text, ": ", shown), input);
      return { label, input, shown };
    };
    const check = (text, checked) => {
      const input = element("input", { type: "checkbox", checked });
      return { label: element("label", { className: "cnt-check" }, input, text), input };
    };
    const sliders = [
      slider("width of the tokens, D", 64, 1024, 64),
      slider("layers a side, L", 1, 12, 1),
      slider("width inside the feed-forward networks", 128, 4096, 128),
      slider("size of the vocabulary, V", 500, 60000, 500),
    ];
    const tied = check("one shared matrix (tied)", true);
    const preNorm = check("pre-norm (two final norms)", false);

    const caption = element("caption");
    const body = element("tbody");
    const head = element(
      "tr",
      {},
      ...["part", "numbers to learn", "share"].map((text) => element("th", { scope: "col" }, text)),
    );
    const table = element("table", {}, caption, element("thead", {}, head), body);
    const scroll = element("div", { className: "cnt-scroll", tabIndex: 0 }, table);
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Table of the counts");
    const summary = element("p", { className: "cnt-summary" });
    summary.setAttribute("aria-live", "polite");

    const draw = () => {
      const [width, layers, inner, vocabulary] = sliders.map(({ input }) => Number(input.value));
      sliders.forEach(({ input, shown }) => {
        shown.textContent = grouped(Number(input.value));
      });
      const rows = parts({
        width,
        layers,
        inner,
        vocabulary,
        tied: tied.input.checked,
        preNorm: preNorm.input.checked,
      });
      const total = rows.reduce((sum, row) => sum + row.count, 0);
      body.replaceChildren(
        ...[...rows, { name: "all", count: total }].map(({ name, count }) => {
          const share = (100 * count) / total;
          const bar = element("div", { className: "cnt-bar" });
          bar.style.width = `calc((100% - 6px) * ${share / 100})`;
          const cell = element("td", { className: "cnt-share" }, bar, element("span", {}, `${share.toFixed(1)} %`));
          return element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, grouped(count)), cell);
        }),
      );
      caption.textContent = `D = ${width}, L = ${layers}, inner width ${grouped(inner)}, V = ${grouped(vocabulary)}`;
      const attention = rows[0].count + rows[1].count + rows[2].count;
      summary.textContent =
        `${grouped(total)} numbers. All attentions: ${grouped(attention)}. ` +
        `Embeddings and output: ${grouped(rows[5].count)}.`;
    };

    const set = (values) => {
      values.forEach((value, i) => {
        sliders[i].input.value = value;
      });
      draw();
    };
    const buttons = Object.entries(presets).map(([name, values]) =>
      element("button", { type: "button", onclick: () => set(values) }, name),
    );
    for (const input of [...sliders, tied, preNorm].map((control) => control.input)) {
      input.addEventListener("input", draw);
    }

    el.append(
      element("style", {}, STYLE),
      element(
        "div",
        { className: "cnt" },
        element("div", { className: "cnt-presets" }, element("span", {}, "Start from:"), ...buttons),
        element(
          "div",
          { className: "cnt-controls" },
          ...sliders.map((control) => control.label),
          element("div", {}, tied.label, preNorm.label),
        ),
        scroll,
        summary,
      ),
    );
    set(Object.values(presets)[0]);
  },
};
