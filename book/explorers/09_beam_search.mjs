// Beam search as a tree, one step at a time, on a small table of next-word probabilities. Below each
// step stands its work: tokens that go through the layers with a cache of keys and values, and without.

const { make, draw, fixed, slider, push, row, put, frame } = course;

const LONGEST = 6;
const [STEP, LINE] = [88, 30]; // pixels of a step's column and of a leaf's row
const [BELOW, TALL] = [74, 40]; // of the bars of work
const STYLE = `
.bs-tree { margin-top: 0.9rem; }
.bs-edge { fill: none; stroke: var(--quiet); stroke-width: 1.5; }
.bs-edge.bs-live, .bs-edge.bs-finished { stroke: var(--blue); }
.bs-edge.bs-best { stroke-width: 4; }
.bs-dropped { opacity: 0.45; }
.bs-dropped .bs-word { text-decoration: line-through; }
.fig svg .bs-best .bs-word { font-weight: 700; fill: var(--blue); }
.bs-kept { fill: var(--blue); }
.bs-again { fill: var(--rust); fill-opacity: 0.55; }
.bs-ranks { margin-top: 0.4rem; }
.bs-ranks li { display: grid; grid-template-columns: minmax(7rem, 11rem) minmax(2rem, 1fr) 7.5rem; gap: 0.7rem; align-items: center; font-variant-numeric: tabular-nums; }
.bs-ranks li:first-child { font-weight: 600; }
.bs-bar { height: 10px; border-radius: 5px; background: linear-gradient(var(--blue) 0 0) no-repeat left / calc(100% * var(--share)) 100%, var(--paper); }
@container (max-width: 26rem) { .bs-ranks li { grid-template-columns: 1fr 7.5rem; } .bs-bar { display: none; } }
`;

const byChance = (a, b) => b.chance - a.chance;

// All nodes of the search, {parent, word, chance, depth, fate}; `last` is the step of the last one.
function search(after, begin, end, size) {
  const root = { parent: null, word: begin, chance: 1, depth: 0, fate: "live" };
  const nodes = [root];
  let live = [root];
  let last = 0;
  while (live.length && last < LONGEST) {
    last += 1;
    const grown = live.flatMap((parent) => Object.entries(after[parent.word]).map(([word, p]) => ({ parent, word, chance: parent.chance * p, depth: last, fate: "dropped" }))).sort(byChance);
    for (const one of grown.slice(0, size)) one.fate = one.word === end ? "finished" : "live";
    live = grown.filter(({ fate }) => fate === "live");
    nodes.push(...grown);
  }
  return { nodes, last };
}

const chance = (node) => (node.chance < 0.0005 ? "<0.001" : fixed(node.chance, 3));
const path = (node) => (node.parent ? [...path(node.parent), node] : []);
const text = (node) => path(node).filter(({ fate }) => fate !== "finished").map(({ word }) => word).join(" ");

// The rows of the tree: children are next to each other, so that no two lines cross.
function placed(nodes) {
  const at = new Map();
  let next = 0;
  const visit = (node) => {
    const children = nodes.filter(({ parent }) => parent === node).sort(byChance);
    const rows = children.map(visit);
    at.set(node, rows.length ? rows[0] : next++);
    return at.get(node);
  };
  visit(nodes[0]);
  return at;
}

function tree(nodes, best) {
  const at = placed(nodes);
  const onBest = new Set(best ? path(best) : []);
  const x = ({ depth }) => 2 + STEP * depth;
  const y = (node) => LINE * (at.get(node) + 0.5) + 4;
  const kind = (node) => `bs-${node.fate}${onBest.has(node) ? " bs-best" : ""}`;
  const edges = nodes.slice(1).map((node) => {
    const [from, end] = [x(node.parent) + STEP - 30, x(node) - 4];
    return draw("path", { d: `M${from} ${y(node.parent)}C${from + 13} ${y(node.parent)} ${end - 13} ${y(node)} ${end} ${y(node)}`, class: `bs-edge ${kind(node)}` });
  });
  const words = nodes.map((node) => draw("g", { class: kind(node) }, [
    draw("text", { x: x(node), y: y(node) + 1, class: "bs-word" }, [node.word]),
    draw("text", { x: x(node), y: y(node) + 13, class: "fig-faint" }, [node.parent ? chance(node) : ""]),
  ]));
  const depth = Math.max(...nodes.map((node) => node.depth));
  const foot = LINE * Math.max(...at.values()) + LINE + 12;
  const [width, height] = [STEP * depth + 72, foot + BELOW];
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": told(nodes, best) }, [...edges, ...words, ...work(nodes, depth, foot)]);
}

function told(nodes, best) {
  const of = (fate) => nodes.filter((node) => node.fate === fate && node.parent).length;
  return `Tree of the search: ${of("live")} nodes kept, ${of("finished")} finished, ${of("dropped")} dropped${best ? `; the best is ${text(best)}` : ""}`;
}

// Tokens that are read in each step: the newest of each live hypothesis, or all of each once more.
function work(nodes, depth, foot) {
  const steps = Array.from({ length: depth }, (_, n) => {
    const live = nodes.filter((node) => node.depth === n && node.fate === "live").length;
    return { n, kept: live, again: live * (n + 1) };
  });
  const most = Math.max(1, ...steps.map(({ again }) => again));
  return steps.flatMap(({ n, kept, again }) => {
    const x = 2 + STEP * (n + 1);
    const bar = (at, value, kind) => draw("rect", { x: at, y: foot + 12 + TALL * (1 - value / most), width: 16, height: TALL * (value / most), class: kind });
    return [
      bar(x, kept, "bs-kept"), bar(x + 20, again, "bs-again"),
      draw("text", { x, y: foot + BELOW - 7, class: "fig-faint" }, [`${kept} or ${again}`]),
    ];
  });
}

export default {
  render({ model, el }) {
    const [after, begin, end] = [model.get("after"), model.get("begin"), model.get("end")];
    let step = Infinity;
    const picture = make("div", { class: "fig-scroll bs-tree", tabindex: 0, role: "region", "aria-label": "Tree of the search" });
    const ranks = make("div");
    const update = () => show();
    const size = slider("beam size", { min: 1, max: 4, value: 2 }, update);
    const alpha = slider("length penalty α", { max: 1.5, step: 0.1, value: 0 }, update, (value) => fixed(value, 1));
    const move = (name, act) => push(name, () => { act(); show(); });
    const [back, next] = [move("One step back", () => { step -= 1; }), move("Next step", () => { step += 1; })];
    const [all, again] = [move("To the end", () => { step = Infinity; }), move("Start again", () => { step = 0; })];
    const say = frame(
      el, "Beam search for a translation of “I live in Paris”", STYLE, row(size, alpha), row(again, back, next, all), picture,
      make("p", { class: "fig-note" }, ["Below each step: tokens that go through the layers, blue with a cache of keys and values, rust without."]), ranks,
    );

    const score = (node) => Math.log(node.chance) / ((5 + node.depth) / 6) ** alpha.get();

    function ranked(finished) {
      const scores = finished.map(score);
      const [best, worst] = [Math.max(...scores), Math.min(...scores)];
      return make("ol", { class: "bs-ranks", "aria-label": "Finished, the best score first" }, finished.map((node, i) => {
        const bar = make("span", { class: "bs-bar" });
        bar.style.setProperty("--share", best === worst ? 1 : (1 - 0.75 * ((best - scores[i]) / (best - worst))).toFixed(3));
        return make("li", {}, [make("span", {}, [text(node)]), bar, make("span", {}, [`score ${fixed(scores[i], 3)}`])]);
      }));
    }

    function show() {
      const { nodes, last } = search(after, begin, end, size.get());
      step = Math.max(0, Math.min(step, last));
      const grown = nodes.filter(({ depth }) => depth <= step);
      const finished = grown.filter(({ fate }) => fate === "finished").sort((a, b) => score(b) - score(a));
      put(picture, tree(grown, finished[0]));
      put(ranks, ranked(finished));
      // not "disabled": the button just pressed would lose the keyboard
      for (const one of [back, again]) one.setAttribute("aria-disabled", String(step === 0));
      for (const one of [next, all]) one.setAttribute("aria-disabled", String(step === last));
      const live = grown.filter(({ depth, fate }) => depth === step && fate === "live").length;
      const best = finished.length ? ` Best finished: ${text(finished[0])}, score ${fixed(score(finished[0]), 3)}.` : "";
      say(`Step ${step}: ${live} live, ${finished.length} finished.${best}${step === last ? " The search is over." : ""}`);
    }
    show();
  },
};
