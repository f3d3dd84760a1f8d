// Random layers, wrapped in four ways: how large a token's numbers are after each layer, and how alike
// the tokens have become. Each curve is the mean of some random starts.

const { make, draw, range, fixed, slider, check, push, row, put, frame, softmax, generator } = course;

const [TOKENS, WIDTH, STARTS] = [5, 16, 6];
const [WIDE, TALL, LEFT, FOOT] = [300, 180, 40, 26]; // pixels of a chart
const STYLE = `
.dep-both { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(16rem, 100%), 1fr)); gap: 0.4rem 1.6rem; margin-top: 0.6rem; }
.fig .dep-both svg { width: 100%; }
.dep-grid { stroke: var(--line); }
.dep-line { fill: none; stroke: var(--quiet); stroke-width: 2; }
.dep-bare { stroke-dasharray: 2 4; }
.dep-added { stroke-dasharray: 8 4; }
.dep-post { stroke: var(--rust); }
.dep-pre { stroke: var(--blue); }
.fig svg .dep-name-post { fill: var(--rust); }
.fig svg .dep-name-pre { fill: var(--blue); }
`;
const PIECE = 8; // milliseconds of work at a time
const add = (a, b) => a.map((line, i) => line.map((value, j) => value + b[i][j]));
const times = (a, columns) => a.map((line) => columns.map((column) => line.reduce((sum, value, i) => sum + value * column[i], 0)));
const WAYS = {
  bare: { name: "alone", wrap: (x, part) => part(x) },
  added: { name: "added", wrap: (x, part) => add(x, part(x)) },
  post: { name: "post-norm", wrap: (x, part) => normalised(add(x, part(x))) },
  pre: { name: "pre-norm", wrap: (x, part) => add(x, part(normalised(x))) },
};

function normalised(rows) {
  return rows.map((line) => {
    const mean = line.reduce((a, b) => a + b, 0) / line.length;
    const spread = Math.sqrt(line.reduce((sum, value) => sum + (value - mean) ** 2, 0) / line.length + 1e-5);
    return line.map((value) => (value - mean) / spread);
  });
}

// The sub-layers of one layer: an attention and, if it is there, a network.
function layer(normal, network) {
  const matrix = (rows, columns, scale) => range(columns).map(() => range(rows).map(() => normal() * scale));
  const [q, k, v] = range(3).map(() => matrix(WIDTH, WIDTH, WIDTH ** -0.5));
  const [up, down] = [matrix(WIDTH, 4 * WIDTH, (2.5 * WIDTH) ** -0.5), matrix(4 * WIDTH, WIDTH, (2.5 * WIDTH) ** -0.5)];
  const attention = (x) => {
    const [asked, keys, values] = [q, k, v].map((columns) => times(x, columns));
    const weights = asked.map((query) => softmax(keys.map((key) => query.reduce((sum, value, i) => sum + value * key[i], 0) / Math.sqrt(WIDTH))));
    return times(weights, range(WIDTH).map((j) => values.map((line) => line[j])));
  };
  const inner = (x) => times(times(x, up).map((line) => line.map((value) => Math.max(0, value))), down);
  return network ? [attention, inner] : [attention];
}

const root = (values) => Math.sqrt(values.reduce((sum, value) => sum + value ** 2, 0) / values.length);

// Mean cosine of two different tokens.
function alike(x) {
  const units = x.map((line) => line.map((value) => value / (root(line) * Math.sqrt(line.length))));
  const pairs = range(x.length).flatMap((i) => range(i).map((j) => units[i].reduce((sum, value, c) => sum + value * units[j][c], 0)));
  return pairs.reduce((a, b) => a + b, 0) / pairs.length;
}

// Sizes and alikeness after 0, 1, 2 ... layers, of each way; it can be left off after each layer.
function* measured(depth, network, seed) {
  const sums = Object.fromEntries(Object.keys(WAYS).map((way) => [way, range(depth + 1).map(() => [0, 0])]));
  for (const start of range(STARTS)) {
    const { normal } = generator(seed + start);
    const first = range(TOKENS).map(() => range(WIDTH).map(normal));
    const layers = range(depth).map(() => layer(normal, network));
    for (const [way, { wrap }] of Object.entries(WAYS)) {
      let x = first;
      for (const n of range(depth + 1)) {
        if (n) x = layers[n - 1].reduce(wrap, x);
        sums[way][n][0] += Math.log10(root(x.flat())) / STARTS;
        sums[way][n][1] += alike(x) / STARTS;
        yield;
      }
    }
  }
  return sums;
}

// What some work comes to, done between what else the page has to do; nothing if `stale` says so.
async function inPieces(work, stale) {
  for (;;) {
    for (const end = performance.now() + PIECE; performance.now() < end;) {
      const { done, value } = work.next();
      if (done) return value;
    }
    await new Promise((go) => setTimeout(go));
    if (stale()) return null;
  }
}

// One chart of all four ways; `tell` names the height of a line of the grid.
function chart(title, curves, [low, high], marks, tell) {
  const depth = Object.values(curves)[0].length - 1;
  const x = (n) => LEFT + ((WIDE - LEFT - 84) * n) / depth;
  const y = (value) => 6 + (TALL - 12) * (1 - (Math.max(low, Math.min(high, value)) - low) / (high - low));
  const grid = marks.flatMap((mark) => [
    draw("line", { x1: LEFT, x2: WIDE - 84, y1: y(mark), y2: y(mark), class: "dep-grid" }),
    draw("text", { x: LEFT - 6, y: y(mark) + 4, "text-anchor": "end", class: "fig-faint" }, [tell(mark)]),
  ]);
  const ends = Object.entries(curves).map(([way, values]) => ({ way, at: y(values.at(-1)) })).sort((a, b) => a.at - b.at);
  ends.forEach((end, i) => { end.at = Math.max(end.at, i ? ends[i - 1].at + 14 : 8); });
  const over = Math.max(0, ends.at(-1).at - TALL);
  const names = ends.map(({ way, at }, i) => draw("text", { x: WIDE - 78, y: Math.min(at, at - over + 2 * i) + 4, class: `fig-faint dep-name-${way}` }, [WAYS[way].name]));
  const lines = Object.entries(curves).map(([way, values]) => draw("path", { d: `M${values.map((value, n) => `${x(n).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`, class: `dep-line dep-${way}` }));
  const foot = [draw("text", { x: LEFT, y: TALL + 18, class: "fig-faint" }, ["layer 0"]), draw("text", { x: WIDE - 84, y: TALL + 18, "text-anchor": "end", class: "fig-faint" }, [String(depth)])];
  return make("div", {}, [make("p", { class: "fig-note" }, [title]), draw("svg", { viewBox: `0 0 ${WIDE} ${TALL + FOOT}`, role: "img", "aria-label": title }, [...grid, ...lines, ...names, ...foot])]);
}

export default {
  render({ model, el }) {
    let seed = model.get("seed");
    const place = make("div");
    const depth = slider("layers", { min: 2, max: 24, value: model.get("depth") }, () => show());
    const network = check("with the networks", true, () => show());
    const again = push("Other random weights", () => { seed += STARTS; show(); });
    const say = frame(el, "A deep stack of random layers, wrapped in four ways", STYLE, row(depth, network, again), place);

    let asked = 0;
    async function show() {
      const mine = ++asked;
      const found = await inPieces(measured(depth.get(), network.get(), seed), () => mine !== asked);
      if (!found) return;
      const curves = (at) => Object.fromEntries(Object.entries(found).map(([way, values]) => [way, values.map((one) => one[at])]));
      put(place, make("div", { class: "dep-both" }, [
        chart("size of the numbers, cut off at 0.01 and 100", curves(0), [-2, 2], [-2, -1, 0, 1, 2], (mark) => String(10 ** mark)),
        chart("how alike the tokens are (mean cosine)", curves(1), [0, 1], [0, 0.5, 1], (mark) => fixed(mark, 1)),
      ]));
      const last = (way, at) => found[way].at(-1)[at];
      say(`After ${depth.get()} layers: ${Object.entries(WAYS).map(([way, { name }]) => `${name} size ${Math.abs(last(way, 0)) > 2 ? (last(way, 0) < 0 ? "below 0.01" : "above 100") : fixed(10 ** last(way, 0))}, alike ${fixed(last(way, 1))}`).join("; ")}.`);
    }
    show();
  },
};
