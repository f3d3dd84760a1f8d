// A small encoder with random weights, taken apart: something in its input changes, and a map shows
// whose output moves, layer by layer. All arithmetic happens here, when a control is moved.

const { make, fixed, slider, choice, check, row, put, frame, heat, softmax, generator } = course;

const STYLE = `
.enc-map { margin-top: 0.9rem; }
`;

const CHANGES = [
  ["padding", "the padding's numbers"],
  ["swap", "first two words swap"],
  ["word", "the last word"],
];
const MASKS = [
  ["all", "hidden in every layer"],
  ["first", "hidden in the first layer"],
  ["none", "not hidden"],
  ["queries", "hidden as queries, not as keys"],
];
const STILL = 1e-9;

const zip = (a, b, join) => a.map((value, i) => join(value, b[i]));
const add = (a, b) => zip(a, b, (x, y) => x + y);
const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

// A row times a matrix that is given as a list of columns.
const times = (row, columns) => columns.map((column) => dot(row, column));

function normalised(row) {
  const mean = row.reduce((a, b) => a + b, 0) / row.length;
  const centred = row.map((value) => value - mean);
  const deviation = Math.sqrt(dot(centred, centred) / row.length + 1e-5);
  return centred.map((value) => value / deviation);
}

// One post-norm layer: attention with one head, then a feed-forward network.
function layer(rows, weights, sees) {
  const queries = rows.map((row) => times(row, weights.q));
  const keys = rows.map((row) => times(row, weights.k));
  const values = rows.map((row) => times(row, weights.v));
  return rows.map((row, i) => {
    const visible = keys.map((_, j) => j).filter((j) => sees(i, j));
    const shares = softmax(visible.map((j) => dot(queries[i], keys[j]) / Math.sqrt(row.length)));
    let fetched = row.map(() => 0);
    visible.forEach((j, n) => {
      fetched = add(fetched, values[j].map((value) => shares[n] * value));
    });
    const middle = normalised(add(row, fetched));
    const hidden = times(middle, weights.up).map((value) => Math.max(0, value));
    return normalised(add(middle, times(hidden, weights.down)));
  });
}

// Position n as sines and cosines, as in the chapter on positional encoding.
function position(n, width) {
  return Array.from({ length: width }, (_, j) => {
    const angle = n / 10000 ** ((j - (j % 2)) / width);
    return j % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

export default {
  render({ model, el }) {
    const [words, padding, width, depth] = ["words", "padding", "width", "depth"].map((name) => model.get(name));
    const { normal } = generator(model.get("seed"));
    const vector = (length, scale = 1) => Array.from({ length }, () => scale * normal());
    const matrix = (rows, columns) => Array.from({ length: columns }, () => vector(rows, rows ** -0.5));

    const real = words.length;
    const vectors = words.map(() => vector(width));
    const fillers = Array.from({ length: padding }, () => vector(width));
    const otherFillers = Array.from({ length: padding }, () => vector(width));
    const otherWord = vector(width);
    const layers = Array.from({ length: depth }, () => ({
      q: matrix(width, width),
      k: matrix(width, width),
      v: matrix(width, width),
      up: matrix(width, 2 * width),
      down: matrix(2 * width, width),
    }));

    const update = () => show();
    const change = choice("what changes", CHANGES, "padding", update);
    const mask = choice("padding is", MASKS, "first", update);
    const count = slider("layers", { min: 1, max: depth, value: depth }, update);
    const positions = check("positions added", true, update);
    const causal = check("causal mask", false, update);
    const picture = make("div", { class: "fig-scroll enc-map", tabindex: 0, role: "region", "aria-label": "Map of changes by token and layer" });
    const say = frame(el, "Whose vector moves?", STYLE, row(change, mask, count), row(positions, causal), picture, make("p", { class: "fig-note" }, ["How far each token's vector moves, layer by layer; a dash: not at all."]));

    // Whether query i may attend to key j in this layer. A query that may see nothing else sees itself.
    const seesIn = (number) => (i, j) => {
      if (i === j) return true;
      if (causal.get() && j > i) return false;
      const rule = mask.get();
      if (rule === "queries") return i < real;
      return j < real || rule === "none" || (rule === "first" && number > 0);
    };

    // The rows after each layer.
    const run = (rows) => {
      let state = positions.get() ? rows.map((line, n) => add(line, position(n, width))) : rows;
      return layers.slice(0, count.get()).map((weights, number) => {
        state = layer(state, weights, seesIn(number));
        return state;
      });
    };

    // The input after the change, and where each of its tokens stood before.
    function changed(before) {
      const [after, cameFrom] = [[...before], before.map((_, n) => n)];
      if (change.get() === "padding") after.splice(real, padding, ...otherFillers);
      if (change.get() === "word") after[real - 1] = otherWord;
      if (change.get() === "swap") {
        [after[0], after[1]] = [after[1], after[0]];
        [cameFrom[0], cameFrom[1]] = [1, 0];
      }
      return { after, cameFrom };
    }

    function show() {
      const before = [...vectors, ...fillers];
      const { after, cameFrom } = changed(before);
      const [first, second] = [run(before), run(after)];
      const gaps = before.map((_, n) => first.map((rows, m) => Math.max(...zip(rows[n], second[m][cameFrom.indexOf(n)], (x, y) => Math.abs(x - y)))));
      const last = change.get() === "word" ? `${words.at(-1)} → ${model.get("other")}` : words.at(-1);
      put(picture, heat({
        name: "How far each token's vector moves", values: gaps, rows: [...words.slice(0, -1), last, ...fillers.map(() => "padding")], columns: first.map((_, m) => `layer ${m + 1}`),
        most: 2, cell: 50, left: 92, write: (gap) => (gap < STILL ? "–" : fixed(gap)),
      }));
      const moved = first.map((_, m) => gaps.slice(0, real).filter((line) => line[m] >= STILL).length);
      say(`Of the ${real} real words, moved: ${moved.map((number, m) => `${number} after layer ${m + 1}`).join(", ")}.`);
    }
    show();
  },
};
