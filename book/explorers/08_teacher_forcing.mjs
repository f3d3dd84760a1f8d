// One target sentence under teacher forcing: what each place reads and should say, its loss, and what
// label smoothing adds to it; beside it the model's p and the target q of the chosen place.

const { make, fixed, slider, check, push, row, put, frame } = course;

const STYLE = `
.tf-both { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr)); gap: 0.4rem 2rem; margin-top: 0.6rem; }
.tf-list li { display: grid; grid-template-columns: minmax(0, 11rem) minmax(1.5rem, 1fr) 2.6rem; gap: 0.6rem; align-items: center; min-height: 36px; font-variant-numeric: tabular-nums; }
.tf-list button { width: 100%; text-align: left; padding: 0.1rem 0.35rem; font-size: 0.95rem; border-color: transparent; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.tf-list .tf-left-out { opacity: 0.45; }
.tf-loss { display: flex; height: 14px; }
.tf-loss > span { height: 100%; }
.tf-loss > span:first-child { background: var(--blue); border-radius: 4px 0 0 4px; }
.tf-loss > span:last-child { background: var(--rust); border-radius: 0 4px 4px 0; }
.tf-classes li { display: grid; grid-template-columns: 3.8rem minmax(1.5rem, 1fr) auto; gap: 0.6rem; align-items: center; min-height: 36px; font-variant-numeric: tabular-nums; }
.tf-classes li > :last-child { white-space: nowrap; }
.tf-classes li > :first-child { text-align: right; }
.tf-two > span { display: block; height: 8px; border-radius: 4px; min-width: 2px; }
.tf-two > span:first-child { background: var(--blue); }
.tf-two > span:last-child { background: var(--rust); margin-top: 2px; }
.tf-classes .tf-label { font-weight: 600; }
`;

function logSoftmax(logits) {
  const most = Math.max(...logits);
  const norm = most + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0));
  return logits.map((logit) => logit - norm);
}

// The smoothed target: what is left on the label, and an even share for every class.
const smoothed = (label, classes, epsilon) => Array.from({ length: classes }, (_, v) => (v === label ? 1 - epsilon : 0) + epsilon / classes);
const crossEntropy = (target, logP) => -target.reduce((sum, q, v) => sum + q * logP[v], 0);
const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;

function bar(share) {
  const span = make("span");
  span.style.width = `${Math.max(0, 100 * share)}%`;
  return span;
}

export default {
  render({ model, el }) {
    const [vocabulary, input, labels] = ["vocabulary", "input", "labels"].map((name) => model.get(name));
    const logP = model.get("logits").map(logSoftmax);
    const pad = vocabulary[model.get("pad")];
    const ids = labels.map((label) => vocabulary.indexOf(label));
    const plain = logP.map((all, t) => -all[ids[t]]);
    let chosen = model.get("chosen");
    const [places, classes, caption] = [make("div"), make("div"), make("p", { class: "fig-note" })];
    const smoothing = slider("label smoothing ε", { max: 0.5, step: 0.05, value: 0.1 }, () => show(), (value) => fixed(value));
    const counted = check("count padding in the mean", false, () => show());
    const say = frame(el, `“${model.get("source")}”: what each place reads, what it should say, and its loss`, STYLE, row(smoothing, counted), make("div", { class: "tf-both" }, [
      make("div", {}, [make("p", { class: "fig-note" }, ["reads → label; blue: loss without smoothing, rust: what smoothing adds"]), places]),
      make("div", {}, [caption, classes]),
    ]));

    function place(t, loss, most) {
      const text = `${input[t]} → ${labels[t]}`;
      const button = push(text, () => { chosen = t; show(); }, { "aria-pressed": String(t === chosen), title: text });
      const both = make("span", { class: "tf-loss" }, [bar(Math.min(plain[t], loss) / most), bar(Math.max(0, loss - plain[t]) / most)]);
      return make("li", labels[t] === pad && !counted.get() ? { class: "tf-left-out" } : {}, [button, both, make("span", {}, [fixed(loss)])]);
    }

    function show() {
      const epsilon = smoothing.get();
      const targets = ids.map((id) => smoothed(id, vocabulary.length, epsilon));
      const losses = targets.map((target, t) => crossEntropy(target, logP[t]));
      put(places, make("ol", { class: "tf-list" }, losses.map((loss, t) => place(t, loss, Math.max(...losses)))));
      caption.textContent = `after ${input.slice(0, chosen + 1).join(" ")}: blue the model's p, rust the target q`;
      put(classes, make("ol", { class: "tf-classes" }, vocabulary.map((token, v) => {
        const [p, q] = [Math.exp(logP[chosen][v]), targets[chosen][v]];
        return make("li", v === ids[chosen] ? { class: "tf-label" } : {}, [make("span", {}, [token]), make("span", { class: "tf-two" }, [bar(p), bar(q)]), make("span", {}, [`${fixed(p, 3)}  ${fixed(q, 3)}`])]);
      })));
      const used = losses.filter((_, t) => counted.get() || labels[t] !== pad);
      const lowest = -targets[0].reduce((sum, q) => (q > 0 ? sum + q * Math.log(q) : sum), 0);
      say(`Loss after “${input[chosen]}”: ${fixed(losses[chosen], 3)}, of which smoothing adds ${fixed(losses[chosen] - plain[chosen], 3)}. Mean over ${used.length} places: ${fixed(mean(used), 3)}; no model gets below ${fixed(lowest, 3)}.`);
    }
    show();
  },
};
