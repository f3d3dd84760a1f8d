// A drawing of two things, cut into patches of a size of the reader's choice, and shuffled. What a
// bag of patches still says is counted below, from the pixels.

const STYLE = `
.pat { color: var(--pst-color-text-base, inherit); }
.pat .pat-controls { display: flex; flex-wrap: wrap; gap: 0.5rem 1.2rem; align-items: end; margin-bottom: 0.7rem; }
.pat label { display: flex; flex-direction: column; }
.pat select, .pat button { min-height: 2rem; padding: 0.1rem 0.7rem; font: inherit; color: inherit; background: var(--pst-color-surface, transparent); border: 1px solid var(--pst-color-border, #888); border-radius: 4px; }
.pat svg { display: block; width: 100%; max-width: 32rem; height: auto; }
.pat .pat-summary { margin: 0.7rem 0 0; }
`;

const SVG = "http://www.w3.org/2000/svg";
const CELL = 10; // of the drawing, for one pixel

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  return made;
}

function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function mixed(count, random) {
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

export default {
  render({ model, el }) {
    const [height, width, things] = ["height", "width", "things"].map((key) => model.get(key));
    const random = generator(model.get("seed"));
    const pixels = Array.from({ length: height }, () => Array(width).fill(null));
    things.forEach(({ colour, rows, top, left }) => {
      rows.forEach((row, y) => {
        [...row].forEach((mark, x) => { if (mark === "#") pixels[top + y][left + x] = colour; });
      });
    });

    let order = null; // null: as it is
    const picture = shape("svg", { viewBox: `0 0 ${width * CELL} ${height * CELL}`, role: "img" });
    const summary = element("p", { className: "pat-summary" });
    summary.setAttribute("aria-live", "polite");
    const size = element("select");
    [1, 2, 4, 8].forEach((side) => {
      size.append(element("option", { value: side, selected: side === 4 }, `${side} x ${side} pixels`));
    });

    const patches = (side) => {
      const found = [];
      for (let top = 0; top < height; top += side) {
        for (let left = 0; left < width; left += side) {
          found.push(pixels.slice(top, top + side).map((row) => row.slice(left, left + side)));
        }
      }
      return found;
    };

    const draw = () => {
      const side = Number(size.value);
      const cut = patches(side);
      const columns = width / side;
      picture.replaceChildren(shape("rect", { width: width * CELL, height: height * CELL, fill: "#000" }));
      cut.forEach((_, place) => {
        const patch = cut[order ? order[place] : place];
        const [top, left] = [Math.floor(place / columns) * side, (place % columns) * side];
        patch.forEach((row, y) => row.forEach((colour, x) => {
          if (colour) {
            picture.append(shape("rect", {
              x: (left + x) * CELL, y: (top + y) * CELL, width: CELL, height: CELL, fill: colour,
            }));
          }
        }));
        picture.append(shape("rect", {
          x: left * CELL, y: top * CELL, width: side * CELL, height: side * CELL,
          fill: "none", stroke: "#9aa3ad", "stroke-width": 1,
        }));
      });
      const holds = (patch, colour) => patch.some((row) => row.includes(colour));
      const counts = things.map(({ colour }) => cut.filter((patch) => holds(patch, colour)).length);
      const both = cut.filter((patch) => things.every(({ colour }) => holds(patch, colour))).length;
      const n = cut.length;
      const state = order ? "shuffled" : "in their places";
      picture.setAttribute("aria-label", `${n} patches of ${side} x ${side} pixels, ${state}.`);
      const parts = things.map(({ name }, i) => `${counts[i]} with a part of the ${name}`);
      summary.textContent =
        `${n} tokens of ${3 * side * side} numbers, ${n * n} scores in each head. The patches are ${state}: ` +
        `${parts.join(", ")}, ${both === 0 ? "none" : both} with both.`;
    };

    size.addEventListener("change", () => { order = null; draw(); });
    const button = (text, act) => {
      const made = element("button", { type: "button" }, text);
      made.addEventListener("click", () => { act(); draw(); });
      return made;
    };
    const controls = element(
      "div",
      { className: "pat-controls" },
      element("label", {}, element("span", {}, "patch"), size),
      button("Shuffle", () => {
        const side = Number(size.value);
        order = mixed((height / side) * (width / side), random);
      }),
      button("Put back", () => { order = null; }),
    );
    el.append(element("style", {}, STYLE), element("div", { className: "pat" }, controls, picture, summary));
    draw();
  },
};
