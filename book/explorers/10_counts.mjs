// How many numbers a Transformer learns, part by part, as bars.

const { make, fixed, slider, check, push, row, put, frame } = course;

const STYLE = `
.cnt-list { margin-top: 0.9rem; }
.cnt-list li { display: grid; grid-template-columns: minmax(9rem, 15rem) minmax(2rem, 1fr) 6.6rem 4.2rem; gap: 0.2rem 0.8rem; align-items: center; min-height: 32px; font-variant-numeric: tabular-nums; }
.cnt-list li > :nth-child(n + 3) { text-align: right; }
.cnt-bar { height: 14px; border-radius: 4px; background: linear-gradient(var(--blue) 0 0) no-repeat left / calc(100% * var(--share)) 100%, var(--paper); }
.cnt-list li:last-child { border-top: 1px solid var(--line); font-weight: 600; }
@container (max-width: 30rem) { .cnt-list li { grid-template-columns: minmax(0, 1fr) 6.6rem 4.6rem; gap: 0.2rem 0.5rem; padding: 0.2rem 0; } .cnt-list li > :first-child { grid-column: 1 / -1; } }
`;

const grouped = (n) => n.toLocaleString("en-GB");

// The parts, for `layers` layers a side and one vocabulary.
function parts({ width, layers, inner, vocabulary, tied, preNorm }) {
  const norms = layers * 5 + (preNorm ? 2 : 0);
  return [
    ["self-attention, encoder", layers * 4 * width ** 2],
    ["self-attention, decoder", layers * 4 * width ** 2],
    ["cross-attention", layers * 4 * width ** 2],
    ["feed-forward networks", layers * 2 * (2 * width * inner + inner + width)],
    ["layer norms", norms * 2 * width],
    [tied ? "embeddings and output: one matrix" : "embeddings and output: three", (tied ? 1 : 3) * vocabulary * width],
  ].map(([name, count]) => ({ name, count }));
}

export default {
  render({ model, el }) {
    const presets = model.get("presets");
    const update = () => show();
    const sliders = [
      ["width D", 64, 1024, 64], ["layers a side L", 1, 12, 1], ["inner width", 128, 4096, 128], ["vocabulary V", 500, 60000, 500],
    ].map(([name, min, max, step], i) => slider(name, { min, max, step, value: Object.values(presets)[0][i] }, update, grouped));
    const tied = check("one shared matrix (tied)", true, update);
    const preNorm = check("pre-norm (two final norms)", false, update);
    const buttons = Object.entries(presets).map(([name, values]) => push(name, () => { values.forEach((value, i) => sliders[i].set(value)); show(); }));
    const list = make("div");
    const say = frame(el, "Where the numbers are", STYLE, row(...buttons), row(...sliders), row(tied, preNorm), list);

    function show() {
      const [width, layers, inner, vocabulary] = sliders.map((one) => one.get());
      const all = parts({ width, layers, inner, vocabulary, tied: tied.get(), preNorm: preNorm.get() });
      const total = all.reduce((sum, { count }) => sum + count, 0);
      put(list, make("ol", { class: "cnt-list" }, [...all, { name: "all", count: total }].map(({ name, count }) => {
        const bar = make("span", { class: "cnt-bar" });
        bar.style.setProperty("--share", (count / total).toFixed(4));
        return make("li", {}, [make("span", {}, [name]), bar, make("span", {}, [grouped(count)]), make("span", {}, [`${fixed((100 * count) / total, 1)}\u202f%`])]);
      })));
      const attention = all.slice(0, 3).reduce((sum, { count }) => sum + count, 0);
      say(`${grouped(total)} numbers. All attentions: ${grouped(attention)}. Embeddings and output: ${grouped(all[5].count)}.`);
    }
    show();
  },
};
