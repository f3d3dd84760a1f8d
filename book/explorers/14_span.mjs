// What a span does to the weights of one query: a factor for each distance, and what is left of equal
// scores; one key, far back, may have a higher one.

const { make, range, fixed, slider, row, put, frame } = course;

const STYLE = `
.spn-list { margin-top: 0.9rem; }
.spn-list li { display: grid; grid-template-columns: 4.6rem 2.2rem minmax(0, 1fr) 2.8rem; gap: 0.5rem; align-items: center; min-height: 26px; font-variant-numeric: tabular-nums; }
.spn-list li > :first-child { text-align: right; }
.spn-bar { height: 13px; border-radius: 4px; background: linear-gradient(var(--blue) 0 0) no-repeat left / calc(100% * var(--share)) 100%, var(--paper); }
.spn-out { color: var(--quiet); }
.spn-out > :first-child { text-decoration: line-through; }
`;

export default {
  render({ model, el }) {
    const [count, far] = [model.get("tokens"), model.get("match")];
    const one = (value) => fixed(value, 1);
    const update = () => show();
    const z = slider("span z", { min: 0, max: count, step: 0.5, value: 3 }, update, one);
    const ramp = slider("ramp R", { min: 1, max: 8, step: 0.5, value: 4 }, update, one);
    const score = slider("score of the match", { min: 0, max: 8, step: 0.5, value: 0 }, update, one);
    const list = make("div");
    const note = make("p", { class: "fig-note" }, ["distance, factor, weight"]);
    const say = frame(el, "What a span leaves of the weights", STYLE, row(z, ramp, score), note, list);

    function show() {
      const factors = range(count).map((d) => Math.min(1, Math.max(0, (ramp.get() + z.get() - d) / ramp.get())));
      const parts = factors.map((factor, d) => factor * Math.exp(d === far ? score.get() : 0));
      const sum = parts.reduce((total, part) => total + part, 0);
      put(list, make("ol", { class: "spn-list" }, parts.map((part, d) => {
        const bar = make("span", { class: "spn-bar" });
        bar.style.setProperty("--share", (part / sum).toFixed(4));
        const words = [d === far ? `match, ${d}` : `${d}`, fixed(factors[d]), bar, fixed(part / sum, 3)];
        return make("li", factors[d] > 0 ? {} : { class: "spn-out" }, words.map((word) => (word === bar ? bar : make("span", {}, [word]))));
      })));
      const kept = factors.filter((factor) => factor > 0).length;
      say(`${kept} of ${count} keys are read; the match at distance ${far} gets the weight ${fixed(parts[far] / sum, 3)}.`);
    }
    show();
  },
};
