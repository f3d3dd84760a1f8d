// One small multi-head layer with random weights. One input number is nudged; each head shows its
// weights, and in a second map how far they moved. What stays is empty.

const { make, range, fixed, choice, row, put, frame, heat, softmax, generator } = course;

const STYLE = `
.hd-heads { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr)); gap: 0.8rem 1.4rem; margin-top: 0.9rem; }
.hd-head { border-top: 3px solid var(--line); padding-top: 0.3rem; min-width: 0; }
.hd-head.hd-noticed { border-color: var(--blue); }
.hd-pair { display: flex; gap: 0.8rem; }
.hd-pair > div { min-width: 0; }
.hd-head b { font-weight: 600; }
`;
const STILL = 1e-9;

const multiply = (a, b) => a.map((line) => b[0].map((_, j) => line.reduce((sum, value, i) => sum + value * b[i][j], 0)));
const minus = (a, b) => a.map((line, i) => line.map((value, j) => value - b[i][j]));
const largest = (matrix) => Math.max(...matrix.flat().map(Math.abs));

// Each head's weights and result; with slices, a weight that joins two heads' columns counts as 0.
function run(x, weights, heads, slices) {
  const width = x[0].length / heads;
  const scale = 1 / Math.sqrt(slices ? width : x[0].length);
  const head = (column) => Math.floor(column / width);
  const project = (matrix) => multiply(x, matrix.map((line, i) => line.map((w, j) => (slices && head(i) !== head(j) ? 0 : w * scale))));
  const [q, k, v] = weights.map(project);
  return range(heads).map((h) => {
    const [qh, kh, vh] = [q, k, v].map((matrix) => matrix.map((line) => line.slice(h * width, (h + 1) * width)));
    const table = qh.map((query) => softmax(kh.map((key) => query.reduce((sum, value, c) => sum + value * key[c], 0) / Math.sqrt(width))));
    return { table, result: multiply(table, vh) };
  });
}

export default {
  render({ model, el }) {
    const tokens = model.get("tokens");
    const numbered = (values) => values.map((value) => [value, String(value)]);
    const update = () => show();
    const width = choice("width D", numbered(model.get("widths")), model.get("width"), () => { columns(); show(); });
    const heads = choice("heads", numbered(model.get("heads")), model.get("start"), update);
    const order = choice("order", [["paper", "project, then split"], ["slices", "split, then project"]], "paper", update);
    const nudged = choice("add 1 to", [["none", "nothing"], ...tokens.map((token, i) => [i, token])], 1, update);
    const column = choice("in column", [], 0, update);
    const input = make("div");
    const output = make("div");
    const say = frame(el, "Which heads notice?", STYLE, row(heads, order, nudged, column, width), input, output);

    function columns() {
      const now = Math.min(Number(column.get()) || 0, Number(width.get()) - 1);
      column.element.querySelector("select").replaceChildren(...range(Number(width.get())).map((i) => make("option", { value: i }, [String(i)])));
      column.set(now);
    }

    // The input and the weights, of which a smaller width takes a corner.
    function drawn(d) {
      const { normal } = generator(model.get("seed"));
      const matrix = (rows) => range(rows).map(() => range(12).map(normal));
      const x = matrix(tokens.length).map((line) => line.slice(0, d));
      const weights = range(3).map(() => matrix(12).slice(0, d).map((line) => line.slice(0, d)));
      return { x, weights };
    }

    function head(h, before, after) {
      const moved = minus(after.table, before.table);
      const results = largest(minus(after.result, before.result));
      const noticed = Math.max(largest(moved), results) > STILL;
      const map = (name, values, most) => heat({ name: `head ${h}, ${name}`, values, rows: tokens, columns: tokens.map((_, j) => String(j)), most, cell: 24, left: 46 });
      return { noticed, element: make("div", { class: `hd-head${noticed ? " hd-noticed" : ""}` }, [
        make("p", {}, [make("b", {}, [`head ${h} `]), noticed ? `result moved by up to ${fixed(results)}` : "did not notice"]),
        make("div", { class: "hd-pair" }, [
          make("div", {}, [make("p", { class: "fig-note" }, ["weights"]), map("weights", after.table, 1)]),
          make("div", {}, [make("p", { class: "fig-note" }, ["moved by"]), map("how far its weights moved", moved, 0.3)]),
        ]),
      ]) };
    }

    function show() {
      const [d, h] = [Number(width.get()), Number(heads.get())];
      const { x, weights } = drawn(d);
      const [token, feature] = [nudged.get() === "none" ? -1 : Number(nudged.get()), Number(column.get())];
      const slices = order.get() === "slices";
      const changed = x.map((line, i) => line.map((value, j) => value + (i === token && j === feature ? 1 : 0)));
      const names = range(d).map((j) => (d % h || !slices ? String(j) : `${j} · ${Math.floor((j * h) / d)}`));
      const ring = (i, j) => i === token && j === feature;
      put(input, make("p", { class: "fig-note" }, [slices ? "input X: column · the head that reads it" : "input X: each head reads all columns"]), heat({ name: "input X, the nudged number framed", values: changed, rows: tokens, columns: names, most: 2.5, ring, cell: Math.min(44, 230 / d) + 4 }));
      if (d % h) {
        put(output);
        say(`D = ${d} must be divisible by the number of heads: ${h} cannot share ${d} columns evenly.`);
        return;
      }
      const [before, after] = [x, changed].map((rows) => run(rows, weights, h, slices));
      const shown = range(h).map((i) => head(i, before[i], after[i]));
      put(output, make("div", { class: "hd-heads" }, shown.map(({ element }) => element)));
      const noticed = shown.filter((one) => one.noticed).length;
      const perMap = slices ? d * (d / h) : d * d;
      say(`${token < 0 ? "Nothing is nudged." : `${noticed} of ${h} heads noticed.`} Each has width d_k = ${d / h}; each of the three projections has ${perMap} weights.`);
    }
    columns();
    show();
  },
};
