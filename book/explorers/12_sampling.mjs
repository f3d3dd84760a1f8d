// What the next token is drawn from: temperature, top-k and top-p, in this order, on a few words.

const { make, fixed, slider, row, put, frame } = course;

const STYLE = `
.smp-list { margin-top: 0.9rem; }
.smp-list li { display: grid; grid-template-columns: 4.6rem minmax(2rem, 1fr) 3.6rem; gap: 0.7rem; align-items: center; min-height: 30px; font-variant-numeric: tabular-nums; }
.smp-list li > :first-child { text-align: right; }
.smp-bar { height: 14px; border-radius: 4px; background: linear-gradient(var(--blue) 0 0) no-repeat left / calc(100% * var(--share)) 100%, var(--paper); }
.smp-out { color: var(--quiet); }
.smp-out > :first-child { text-decoration: line-through; }
`;

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
    const update = () => show();
    const temperature = slider("temperature", { min: 0.1, max: 3, step: 0.1, value: 1 }, update, (value) => fixed(value, 1));
    const k = slider("top-k", { min: 1, max: words.length, value: words.length }, update);
    const p = slider("top-p", { min: 0.05, max: 1, step: 0.05, value: 1 }, update, (value) => fixed(value));
    const list = make("div");
    const say = frame(el, "What the next word is drawn from", STYLE, row(temperature, k, p), list);

    function show() {
      const shares = shaped(logits, temperature.get(), k.get(), p.get());
      put(list, make("ol", { class: "smp-list" }, shares.map((share, i) => {
        const bar = make("span", { class: "smp-bar" });
        bar.style.setProperty("--share", share.toFixed(4));
        return make("li", share > 0 ? {} : { class: "smp-out" }, [make("span", {}, [words[i]]), bar, make("span", {}, [share > 0 ? fixed(share, 3) : "never"])]);
      })));
      const kept = shares.filter((share) => share > 0).length;
      const entropy = shares.reduce((sum, share) => sum - (share > 0 ? share * Math.log(share) : 0), 0);
      say(`${kept} of ${words.length} words can be drawn; the choice is as uncertain as one among ${fixed(Math.exp(entropy), 1)} equally likely words.`);
    }
    show();
  },
};
