// Beam search, one step at a time, on a small table of next-word probabilities. What is live, what
// was dropped in this step and what is finished are ordered lists, the best first.

const STYLE = `
.bs { color: var(--pst-color-text-base, #1c2126); }
.bs fieldset { border: 0; margin: 0 0 0.6rem; padding: 0; min-width: 0; }
.bs legend { font-weight: 600; font-size: 1rem; margin-bottom: 0.3rem; }
.bs .bs-sliders { display: grid; gap: 0.3rem 1rem; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); }
.bs label { display: flex; flex-direction: column; }
.bs input[type="range"] { width: 100%; min-height: 24px; accent-color: #2f7fd6; }
.bs .bs-buttons { display: flex; flex-wrap: wrap; gap: 0.5rem; margin: 0.4rem 0 0.8rem; }
.bs button { font: inherit; min-height: 32px; padding: 0.2rem 0.8rem; border-radius: 6px; border: 1px solid var(--pst-color-text-base, #1c2126); background: transparent; color: inherit; cursor: pointer; }
.bs button[aria-disabled="true"] { opacity: 0.45; cursor: default; }
.bs h4 { font-size: 1rem; margin: 0.6rem 0 0.2rem; }
.bs ol { margin: 0 0 0.4rem; padding-left: 1.6rem; }
.bs li { margin: 0.15rem 0; }
.bs .bs-words { font-weight: 600; }
.bs .bs-dropped { text-decoration: line-through; font-weight: 400; }
.bs .bs-numbers { display: inline-block; font-variant-numeric: tabular-nums; }
.bs .bs-none { margin: 0 0 0.4rem; }
.bs .bs-summary { margin: 0.7rem 0 0; font-weight: 600; }
`;

function make(name, attributes = {}, children = []) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function fixed(value, digits) {
  return value.toFixed(digits).replace("-", "−");
}

function slider(text, attributes, digits, onInput) {
  const value = make("span");
  const input = make("input", { type: "range", ...attributes });
  const get = () => Number(input.value);
  const show = () => { value.textContent = get().toFixed(digits); };
  input.addEventListener("input", () => { show(); onInput(); });
  show();
  return { element: make("label", {}, [make("span", {}, [`${text} = `, value]), input]), get };
}

const byChance = (a, b) => b.chance - a.chance;

// All states of the search, from the single hypothesis without words to the one without live ones.
function search(after, begin, end, size, longest) {
  let live = [{ words: [begin], chance: 1 }];
  let finished = [];
  const states = [{ live, finished, dropped: [] }];
  while (live.length && states.length <= longest) {
    const extended = live.flatMap(({ words, chance }) =>
      Object.entries(after[words.at(-1)]).map(([word, p]) => ({ words: [...words, word], chance: chance * p })),
    ).sort(byChance);
    const kept = extended.slice(0, size);
    finished = [...finished, ...kept.filter(({ words }) => words.at(-1) === end)];
    live = kept.filter(({ words }) => words.at(-1) !== end);
    states.push({ live, finished, dropped: extended.slice(size) });
  }
  return states;
}

export default {
  render({ model, el }) {
    const after = model.get("after");
    const [begin, end] = [model.get("begin"), model.get("end")];
    let step = 0;
    let ready = false;
    const update = () => { if (ready) show(); };
    const size = slider("beam size", { min: 1, max: 4, step: 1, value: 1 }, 0, update);
    const alpha = slider("length penalty α", { min: 0, max: 1.5, step: 0.1, value: 0 }, 1, update);
    const lists = make("div");
    const summary = make("p", { class: "bs-summary", "aria-live": "polite" });

    const button = (text, act) => {
      const element = make("button", { type: "button" }, [text]);
      element.addEventListener("click", () => { act(); update(); });
      return element;
    };
    const back = button("One step back", () => { step -= 1; });
    const next = button("Next step", () => { step += 1; });
    const all = button("To the end", () => { step = Infinity; });
    const again = button("Start again", () => { step = 0; });

    const score = ({ words, chance }) => Math.log(chance) / ((4 + words.length) / 6) ** alpha.get();
    const text = ({ words }) => words.slice(1).join(" ") || "(nothing yet)";

    function list(title, hypotheses, none, numbers, mark = "") {
      const items = hypotheses.map((one) => make("li", {}, [
        make("span", { class: `bs-words ${mark}` }, [text(one)]),
        " ",
        make("span", { class: "bs-numbers" }, [numbers(one)]),
      ]));
      const body = items.length ? make("ol", {}, items) : make("p", { class: "bs-none" }, [none]);
      return [make("h4", {}, [title]), body];
    }

    function show() {
      const states = search(after, begin, end, size.get(), 6);
      step = Math.max(0, Math.min(step, states.length - 1));
      const { live, finished, dropped } = states[step];
      const ranked = [...finished].sort((a, b) => score(b) - score(a));
      const chance = (one) => `probability ${fixed(one.chance, 4)}`;
      lists.replaceChildren(
        ...list("Live", live, "None is left.", chance),
        ...list("Dropped in this step (the likeliest four)", dropped.slice(0, 4), "None.", chance, "bs-dropped"),
        ...list("Finished, the best score first", ranked, "None yet.", (one) => `${chance(one)}, score ${fixed(score(one), 3)}`),
      );
      const done = step === states.length - 1;
      // not "disabled": the button just pressed would lose the keyboard
      for (const one of [back, again]) one.setAttribute("aria-disabled", String(step === 0));
      for (const one of [next, all]) one.setAttribute("aria-disabled", String(done));
      const best = ranked.length ? ` Best finished: ${text(ranked[0])}, score ${fixed(score(ranked[0]), 3)}.` : "";
      summary.textContent = `Step ${step}: ${live.length} live, ${finished.length} finished.${best}${done ? " The search is over." : ""}`;
    }

    el.append(make("div", { class: "bs" }, [
      make("style", {}, [STYLE]),
      make("fieldset", {}, [
        make("legend", {}, ["Beam search for a translation of “I live in Paris”"]),
        make("div", { class: "bs-sliders" }, [size.element, alpha.element]),
      ]),
      make("div", { class: "bs-buttons" }, [next, back, all, again]),
      lists,
      summary,
    ]));
    ready = true;
    show();
  },
};
