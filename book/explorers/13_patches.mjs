// A drawing of two things, cut into patches of a size of the reader's choice, and shuffled. What a
// bag of patches still says is counted below, from the pixels.

const { draw, range, choice, push, row, frame, generator } = course;

const STYLE = `
.pat-picture { width: 100%; max-width: 32rem; margin-top: 0.8rem; }
.pat-night { fill: black; }
.pat-grid { fill: none; stroke: var(--quiet); }
`;
const CELL = 10; // of the drawing, for one pixel

function mixed(count, even) {
  const order = range(count);
  for (let i = count - 1; i > 0; i -= 1) {
    const j = Math.floor(even() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

// What stands where: the colour of each pixel, or null.
function painted(height, width, things) {
  const pixels = range(height).map(() => Array(width).fill(null));
  things.forEach(({ colour, rows, top, left }) => {
    rows.forEach((line, y) => {
      [...line].forEach((mark, x) => { if (mark === "#") pixels[top + y][left + x] = colour; });
    });
  });
  return pixels;
}

function cutUp(pixels, side) {
  const tops = range(pixels.length / side).map((n) => n * side);
  const lefts = range(pixels[0].length / side).map((n) => n * side);
  return tops.flatMap((top) => lefts.map((left) => pixels.slice(top, top + side).map((line) => line.slice(left, left + side))));
}

export default {
  render({ model, el }) {
    const [height, width, things] = ["height", "width", "things"].map((key) => model.get(key));
    const { even } = generator(model.get("seed"));
    const pixels = painted(height, width, things);
    let order = null; // null: as it is
    const picture = draw("svg", { viewBox: `0 0 ${width * CELL} ${height * CELL}`, role: "img", class: "pat-picture" });
    const size = choice("patch", [1, 2, 4, 8].map((side) => [side, `${side} × ${side} pixels`]), 4, () => { order = null; show(); });
    const side = () => Number(size.get());
    const shuffle = push("Shuffle", () => { order = mixed((height / side()) * (width / side()), even); show(); });
    const back = push("Put back", () => { order = null; show(); });
    const say = frame(el, "A drawing as a bag of patches", STYLE, row(size, shuffle, back), picture);

    function placed(patch, place) {
      const columns = width / side();
      const [top, left] = [Math.floor(place / columns) * side(), (place % columns) * side()];
      const dots = patch.flatMap((line, y) => line.flatMap((colour, x) => (colour ? [draw("rect", { x: (left + x) * CELL, y: (top + y) * CELL, width: CELL, height: CELL, fill: colour })] : [])));
      return [...dots, draw("rect", { x: left * CELL, y: top * CELL, width: side() * CELL, height: side() * CELL, class: "pat-grid" })];
    }

    function show() {
      const cut = cutUp(pixels, side());
      const state = order ? "shuffled" : "in their places";
      const night = draw("rect", { width: width * CELL, height: height * CELL, class: "pat-night" });
      picture.replaceChildren(night, ...cut.flatMap((_, place) => placed(cut[order ? order[place] : place], place)));
      picture.setAttribute("aria-label", `${cut.length} patches of ${side()} × ${side()} pixels, ${state}.`);
      const holds = (patch, { colour }) => patch.some((line) => line.includes(colour));
      const parts = things.map((thing) => `${cut.filter((patch) => holds(patch, thing)).length} with a part of the ${thing.name}`);
      const both = cut.filter((patch) => things.every((thing) => holds(patch, thing))).length;
      say(`${cut.length} tokens of ${3 * side() ** 2} numbers, ${cut.length ** 2} scores in each head. The patches are ${state}: ${parts.join(", ")}, ${both || "none"} with both.`);
    }
    show();
  },
};
