// One token before and after a norm, and beside it the numbers of two sentences: those that share a
// mean with the first number are framed. They are a token's, a feature's, or a feature's in one sentence.

const { make, draw, fixed, slider, choice, row, put, frame, heat } = course;

const EPSILONS = [0, 0.00001, 0.1, 1, 10];
const KINDS = [
  ["layer", "LayerNorm"],
  ["batch", "BatchNorm"],
  ["instance", "InstanceNorm"],
];
const MEANS = {
  layer: "framed: the features of one token share a mean",
  batch: "framed: a feature's numbers in all tokens share a mean",
  instance: "framed: a feature's numbers in one sentence share a mean",
};
const [REACH, WIDE] = [80, 300]; // pixels of the largest bar, and of the picture
const MOST = 6;
const STYLE = `
.wm-both { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(15rem, 100%), 1fr)); gap: 0.3rem 2rem; margin: 0.6rem 0; align-items: start; }
.wm-sliders { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.5rem, 1fr)); gap: 0.2rem 1rem; }
.wm-axis { stroke: var(--line); stroke-width: 1.5; }
.wm-in { fill: none; stroke: currentColor; stroke-width: 1.5; stroke-dasharray: 4 3; }
.fig svg.wm-bars { width: 100%; max-width: 22rem; }
`;

const told = (value, digits) => (Number.isNaN(value) ? "0/0" : fixed(value, digits));

// Whether two numbers, at [sentence, token, feature], share a mean.
function together(kind, [b, i, j], [sentence, token, feature]) {
  if (kind === "layer") return b === sentence && i === token;
  return j === feature && (kind === "batch" || b === sentence);
}

function statistics(kind, tokens, place) {
  const values = tokens.flatMap((rows, b) => rows.flatMap((line, i) => line.filter((_, j) => together(kind, [b, i, j], place))));
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length;
  return { mean, variance, count: values.length };
}

// Two bars for each feature: as it came in (dashed) and as it goes out (filled).
function bars(before, after) {
  const step = WIDE / before.length;
  const height = (value) => (REACH * Math.max(-MOST, Math.min(MOST, value))) / MOST;
  const bar = (x, value, kind) => draw("rect", { x, y: REACH + 4 - Math.max(height(value), 0), width: 0.36 * step, height: Math.max(Math.abs(height(value)), 1), class: kind });
  const parts = before.flatMap((value, j) => [
    bar(j * step + 0.08 * step, value, "wm-in"),
    ...(Number.isNaN(after[j]) ? [] : [bar(j * step + 0.5 * step, after[j], after[j] < 0 ? "fig-minus" : "fig-plus")]),
    draw("text", { x: (j + 0.26) * step, y: 2 * REACH + 22, "text-anchor": "middle", class: "fig-faint" }, [told(value, 1)]),
    draw("text", { x: (j + 0.68) * step, y: 2 * REACH + 38, "text-anchor": "middle" }, [told(after[j])]),
  ]);
  const axis = draw("line", { x1: 0, x2: WIDE, y1: REACH + 4, y2: REACH + 4, class: "wm-axis" });
  const name = before.map((value, j) => `feature ${j}: ${told(value, 1)} becomes ${told(after[j])}`).join("; ");
  return draw("svg", { viewBox: `0 0 ${WIDE} ${2 * REACH + 46}`, class: "wm-bars", role: "img", "aria-label": name }, [axis, ...parts]);
}

export default {
  render({ model, el }) {
    const start = model.get("tokens"); // [sentence][token][feature]
    const [picture, grid, whose] = [make("div"), make("div"), make("p", { class: "fig-note" })];
    const update = () => show();
    const values = start[0][0].map((value, j) => slider(`feature ${j}`, { min: -4, max: 6, step: 0.5, value }, update, (one) => fixed(one, 1)));
    const kind = choice("norm", KINDS, "layer", update);
    const gain = slider("gain", { min: -2, max: 3, step: 0.5, value: 1 }, update, (one) => fixed(one, 1));
    const bias = slider("bias", { min: -3, max: 3, step: 0.5, value: 0 }, update, (one) => fixed(one, 1));
    const eps = slider("eps", { max: EPSILONS.length - 1, value: 1 }, update, (at) => String(EPSILONS[at]));
    const say = frame(
      el, "Whose mean?", STYLE, row(kind),
      make("div", { class: "wm-both" }, [
        make("div", {}, [make("p", { class: "fig-note" }, ["token 0 of sentence 0: dashed as it comes in, filled as it goes out"]), picture]),
        make("div", {}, [whose, grid]),
      ]),
      make("div", { class: "wm-sliders" }, [...values, gain, bias, eps].map(({ element }) => element)),
    );

    function show() {
      const tokens = start.map((sentence) => sentence.map((line) => [...line]));
      tokens[0][0] = values.map((value) => value.get());
      const after = tokens[0][0].map((value, j) => {
        const { mean, variance } = statistics(kind.get(), tokens, [0, 0, j]);
        return (gain.get() * (value - mean)) / Math.sqrt(variance + EPSILONS[eps.get()]) + bias.get(); // 0/0 is NaN
      });
      whose.textContent = MEANS[kind.get()];
      put(picture, bars(tokens[0][0], after));
      const places = tokens.flatMap((sentence, b) => sentence.map((_, i) => [b, i]));
      put(grid, heat({
        name: "All numbers, a row a token", values: tokens.flat(), rows: places.map(([b, i]) => `${b}, ${i}`), columns: values.map((_, j) => `f ${j}`), most: MOST, cell: 46, left: 40,
        write: (value) => told(value, 1), ring: (at, j) => together(kind.get(), [...places[at], j], [0, 0, 0]),
      }));
      const { mean, variance, count } = statistics(kind.get(), tokens, [0, 0, 0]);
      say(`The first number shares its mean with ${count - 1} others: mean ${told(mean)}, variance ${told(variance)}. The token becomes ${after.map((one) => told(one)).join(", ")}.`);
    }
    show();
  },
};
