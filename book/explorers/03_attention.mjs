// A query in the plane, to be dragged: its scores with the keys, the weights, and the mixture of the
// values, which are colours. A key can be hidden.

const { make, draw, fixed, slider, check, push, row, put, frame, softmax } = course;

const [SIDE, UNIT] = [300, 60]; // pixels of the plane, and of length 1
const MOST = SIDE / 2 / UNIT; // largest coordinate
const STEP = 0.1; // of an arrow key
const GRIP = 24; // pixels around the tip that a thumb may hit
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const STYLE = `
.at-both { display: grid; grid-template-columns: minmax(0, 20rem) minmax(13rem, 1fr); gap: 0.6rem 1.6rem; margin-top: 0.9rem; align-items: start; }
@container (max-width: 34rem) { .at-both { grid-template-columns: minmax(0, 1fr); } }
.fig .at-plane { width: 100%; cursor: grab; border-radius: 8px; }
.at-grip { fill: transparent; touch-action: none; }
.at-axis { stroke: var(--line); }
.at-key { stroke-linecap: round; }
.at-query { stroke: currentColor; stroke-width: 3; }
.at-head { fill: currentColor; stroke: var(--ground); stroke-width: 2; }
.at-weights li { display: grid; grid-template-columns: 6.2rem minmax(2rem, 1fr) 3.2rem; gap: 0.6rem; align-items: center; min-height: 36px; font-variant-numeric: tabular-nums; }
.at-bar { height: 16px; border-radius: 4px; background: linear-gradient(var(--hue) 0 0) no-repeat left / calc(100% * var(--share)) 100%, var(--paper); }
.at-mixed { height: 3.4rem; border-radius: 8px; margin-top: 0.4rem; border: 1px solid var(--line); }
`;

const css = (rgb) => `rgb(${rgb.map(Math.round).join(", ")})`;

export default {
  render({ model, el }) {
    const keys = model.get("keys").map((key) => ({ ...key, hidden: false }));
    const query = [...model.get("query")];
    const [x, y] = [(value) => SIDE / 2 + UNIT * value, (value) => SIDE / 2 - UNIT * value];
    const update = () => show();
    const temperature = slider("temperature", { min: 0.1, max: 4, step: 0.1, value: 1 }, update, (value) => fixed(value, 1));
    const scaled = check("divide by √d_k", true, update);
    const plane = draw("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "at-plane", tabindex: 0, role: "application", "aria-label": "The plane of keys; arrow keys move the query" });
    const weights = make("ul", { class: "at-weights", "aria-label": "Weights; a press hides a key" });
    const mixed = make("div", { class: "at-mixed", role: "img" });
    const say = frame(
      el, "Drag the query", STYLE, row(temperature, scaled),
      make("div", { class: "at-both" }, [make("div", {}, [plane]), make("div", {}, [make("p", { class: "fig-note" }, ["the weights; press a key to hide it"]), weights, make("p", { class: "fig-note" }, ["the output: the values, mixed by these weights"]), mixed])]),
    );

    function move(to) {
      to.forEach((value, axis) => { query[axis] = Math.max(-MOST, Math.min(MOST, Number(value.toFixed(2)))); });
      show();
    }

    function drag(event) {
      const box = plane.getBoundingClientRect();
      move([((event.clientX - box.left) / box.width - 0.5) * 2 * MOST, (0.5 - (event.clientY - box.top) / box.height) * 2 * MOST]);
    }

    // A thumb that begins elsewhere scrolls the page, or taps: only the query's tip is held by it.
    plane.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" && !event.target.closest(".at-grip")) return;
      plane.setPointerCapture(event.pointerId);
      drag(event);
    });
    plane.addEventListener("click", drag);
    plane.addEventListener("pointermove", (event) => { if (plane.hasPointerCapture(event.pointerId)) drag(event); });
    plane.addEventListener("keydown", (event) => {
      const by = KEYS[event.key];
      if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      move(query.map((value, axis) => value + STEP * by[axis]));
    });

    // Softmax of query · key over the keys that may be seen.
    function shares() {
      const divisor = temperature.get() * (scaled.get() ? Math.SQRT2 : 1);
      const scores = keys.map(({ at, hidden }) => (hidden ? -Infinity : (at[0] * query[0] + at[1] * query[1]) / divisor));
      return keys.every(({ hidden }) => hidden) ? keys.map(() => 0) : softmax(scores);
    }

    function paint(weight) {
      const axes = [[0, SIDE / 2, SIDE, SIDE / 2], [SIDE / 2, 0, SIDE / 2, SIDE]].map(([x1, y1, x2, y2]) => draw("line", { x1, y1, x2, y2, class: "at-axis" }));
      const arrows = keys.flatMap(({ at, word, rgb, hidden }, i) => [
        draw("line", { x1: x(0), y1: y(0), x2: x(at[0]), y2: y(at[1]), class: "at-key", stroke: css(rgb), "stroke-width": (1.5 + 14 * weight[i]).toFixed(1), "stroke-opacity": hidden ? 0.15 : 1 }),
        draw("text", { x: x(at[0] * 1.24), y: y(at[1] * 1.24), "text-anchor": "middle", "dominant-baseline": "central", opacity: hidden ? 0.4 : 1 }, [word]),
      ]);
      const own = [
        draw("line", { x1: x(0), y1: y(0), x2: x(query[0]), y2: y(query[1]), class: "at-query" }),
        draw("circle", { cx: x(query[0]), cy: y(query[1]), r: 9, class: "at-head" }),
        draw("circle", { cx: x(query[0]), cy: y(query[1]), r: GRIP, class: "at-grip" }),
        draw("text", { x: x(query[0]) + 14, y: y(query[1]) - 9, style: "font-weight: 600" }, ["query"]),
      ];
      plane.replaceChildren(draw("rect", { width: SIDE, height: SIDE, class: "fig-paper" }), ...axes, ...arrows, ...own);
    }

    function show() {
      const weight = shares();
      paint(weight);
      put(weights, ...keys.map((key, i) => {
        const bar = make("span", { class: "at-bar" });
        bar.style.setProperty("--share", weight[i].toFixed(4));
        bar.style.setProperty("--hue", css(key.rgb));
        const button = push(key.word, () => { key.hidden = !key.hidden; show(); }, { "aria-pressed": String(!key.hidden), "aria-label": `${key.word}, ${key.hidden ? "hidden" : "seen"}` });
        return make("li", {}, [button, bar, make("span", {}, [key.hidden ? "hidden" : fixed(weight[i])])]);
      }));
      const colour = [0, 1, 2].map((c) => keys.reduce((sum, { rgb }, i) => sum + weight[i] * rgb[c], 0));
      mixed.style.background = css(colour);
      mixed.setAttribute("aria-label", `Output ${css(colour)}`);
      const entropy = weight.reduce((sum, w) => sum - (w > 0 ? w * Math.log2(w) : 0), 0);
      const most = keys[weight.indexOf(Math.max(...weight))];
      say(weight.every((w) => w === 0) ? "All keys are hidden: there is nothing to average, and the weights are 0." : `Query (${query.map((value) => fixed(value, 1)).join(", ")}), length ${fixed(Math.hypot(...query), 1)}: it looks most at “${most.word}”, with ${fixed(Math.max(...weight))}. Entropy ${fixed(entropy)} bits of at most ${fixed(Math.log2(keys.filter(({ hidden }) => !hidden).length))}.`);
    }
    show();
  },
};
