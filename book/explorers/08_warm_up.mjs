// The learning rate of the paper at each step, for a width and a length of warm-up that one can change,
// beside the paper's own.

const { make, draw, range, fixed, slider, choice, row, put, frame } = course;

const [WIDE, TALL, LEFT, TOP, FOOT] = [560, 220, 56, 12, 42]; // pixels of the chart, and around it
const [STEPS, MOST] = [20000, 0.002]; // where the axes end
const STYLE = `
.war-picture { margin-top: 0.9rem; }
.war-grid { stroke: var(--line); }
.war-line { fill: none; stroke-width: 2.5; }
.war-now { stroke: var(--blue); }
.war-paper { stroke: var(--quiet); stroke-dasharray: 6 4; stroke-width: 1.5; }
.war-peak { fill: var(--blue); }
.fig svg .war-word { fill: var(--blue); font-weight: 600; }
`;

const rate = (step, width, warmup) => width ** -0.5 * Math.min(step ** -0.5, step * warmup ** -1.5);
const across = (step) => LEFT + (WIDE * step) / STEPS;
const up = (value) => TOP + TALL * (1 - value / MOST);
const thousands = (step) => step.toLocaleString("en");

function line(width, warmup, kind) {
  const steps = [1, warmup, ...range(200).map((i) => ((i + 1) * STEPS) / 200)].sort((a, b) => a - b);
  const points = steps.map((step) => `${across(step).toFixed(1)},${up(rate(step, width, warmup)).toFixed(1)}`);
  return draw("polyline", { points: points.join(" "), class: `war-line ${kind}` });
}

function chart(width, warmup, paper) {
  const grid = [0, 0.0005, 0.001, 0.0015, 0.002].flatMap((value) => [
    draw("line", { x1: LEFT, x2: LEFT + WIDE, y1: up(value), y2: up(value), class: "war-grid" }),
    draw("text", { x: LEFT - 8, y: up(value), "text-anchor": "end", "dominant-baseline": "central", class: "fig-faint" }, [value === 0 ? "0" : String(value)]),
  ]);
  const feet = [0, 4000, 8000, 12000, 16000, 20000].map((step) =>
    draw("text", { x: across(step), y: TOP + TALL + 17, "text-anchor": step === STEPS ? "end" : "middle", class: "fig-faint" }, [thousands(step)]));
  const peak = rate(warmup, width, warmup);
  const [x, y] = [across(warmup), up(peak)];
  return draw("svg", { viewBox: `0 0 ${LEFT + WIDE + 4} ${TOP + TALL + FOOT}`, width: LEFT + WIDE + 4, height: TOP + TALL + FOOT, role: "img", "aria-label": `Learning rate: up in a line to ${fixed(peak, 5)} at step ${thousands(warmup)}, then down` }, [
    ...grid, ...feet,
    draw("text", { x: LEFT + WIDE / 2, y: TOP + TALL + 36, "text-anchor": "middle", class: "fig-faint" }, ["step (dashed: the paper's)"]),
    line(...paper, "war-paper"), line(width, warmup, "war-now"),
    draw("circle", { cx: x, cy: y, r: 5, class: "war-peak" }),
    draw("text", { x: x + 9, y: y - 6, class: "war-word" }, [fixed(peak, 5)]),
  ]);
}

export default {
  render({ model, el }) {
    const paper = [model.get("d_model"), model.get("warmup")];
    const width = choice("d_model", model.get("widths").map((one) => [String(one), String(one)]), String(paper[0]), () => show());
    const warmup = slider("warm-up", { min: 1000, max: 12000, step: 500, value: model.get("start") }, () => show(), thousands);
    const place = make("div", { class: "fig-scroll war-picture", tabindex: 0, role: "region", "aria-label": "Learning rate at each step" });
    const say = frame(el, "Where the rate peaks", STYLE, row(width, warmup), place);

    function show() {
      const [d, w] = [Number(width.get()), warmup.get()];
      put(place, chart(d, w, paper));
      say(`The peak is ${fixed(rate(w, d, w), 5)}, at step ${thousands(w)}. At step ${thousands(STEPS)} the rate is ${fixed(rate(STEPS, d, w), 5)}.`);
    }
    show();
  },
};
