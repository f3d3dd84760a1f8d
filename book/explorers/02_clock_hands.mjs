// The sinusoidal table as clocks: each pair of columns is a hand, and a shift turns every hand.

const { make, draw, fixed, slider, row, put, frame } = course;

const LAST_POSITION = 40;
const LARGEST_SHIFT = 12;

const LEFT = 62; // pixels of the strip's labels
const STYLE = `
.clk-faces { display: grid; gap: 0.5rem; grid-template-columns: repeat(auto-fill, minmax(6.2rem, 1fr)); margin: 0.8rem 0; }
.clk-faces figure { margin: 0; text-align: center; }
.fig .clk-faces figcaption { font: 0.85rem/1.5 var(--pst-font-family-base, sans-serif); margin: 0; padding: 0; }
.fig .clk-faces svg { width: 100%; max-width: 7.5rem; margin: 0 auto; }
.clk-scroll { overflow-x: auto; }
.clk-scroll caption { caption-side: top; text-align: left; padding: 0; font-size: 0.85rem; color: var(--quiet); }
.clk-scroll table { border-collapse: collapse; margin: 0.6rem 0 0; font-variant-numeric: tabular-nums; color: inherit; }
.clk-scroll :is(th, td) { border: 0; border-bottom: 1px solid var(--line); padding: 0.2rem 0.5rem; text-align: right; white-space: nowrap; }
.clk-face { fill: none; stroke: var(--quiet); stroke-width: 1.5; }
.clk-hand { stroke: currentColor; stroke-width: 4; stroke-linecap: round; }
.clk-hand.clk-later { stroke: var(--blue); stroke-dasharray: 6 5; }
.clk-mark { fill: none; stroke: currentColor; stroke-width: 1.5; }
.clk-mark.clk-later { stroke-dasharray: 4 3; }
`;

function hand(angle, extra) {
  const x = 50 + 38 * Math.sin(angle);
  const y = 50 - 38 * Math.cos(angle);
  return draw("line", { x1: 50, y1: 50, x2: x, y2: y, class: `clk-hand ${extra}` });
}

function clock(pair, now, later) {
  const description = `Pair ${pair}: the hand stands at ${fixed(now, 2)} radians, after the shift at ${fixed(later, 2)}.`;
  const picture = draw("svg", { viewBox: "0 0 100 100", role: "img", "aria-label": description }, [
    draw("circle", { cx: 50, cy: 50, r: 44, class: "clk-face" }),
    hand(later, "clk-later"),
    hand(now, ""),
  ]);
  return make("figure", {}, [picture, make("figcaption", {}, [`pair ${pair}`])]);
}

function strip(frequencies, position, shift) {
  const columns = 2 * frequencies.length;
  const [width, height] = [8, 12];
  const positions = LAST_POSITION + LARGEST_SHIFT + 1;
  const cells = [];
  for (let p = 0; p < positions; p += 1) {
    for (let c = 0; c < columns; c += 1) {
      const angle = p * frequencies[Math.floor(c / 2)];
      const value = c % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
      cells.push(draw("rect", {
        x: LEFT + p * width, y: c * height, width, height,
        class: value < 0 ? "fig-minus" : "fig-plus", "fill-opacity": Math.abs(value).toFixed(2),
      }));
    }
  }
  const names = frequencies.map((_, pair) => draw("text", { x: LEFT - 8, y: height * (2 * pair + 1) + 4, "text-anchor": "end" }, [`pair ${pair}`]));
  const mark = (p, extra) => draw("rect", {
    x: LEFT + p * width, y: 0.75, width, height: columns * height - 1.5, class: `clk-mark ${extra}`,
  });
  return draw("svg", {
    viewBox: `0 0 ${LEFT + positions * width} ${columns * height}`, role: "img",
    "aria-label": `The table lying on its side: a column for each of ${positions} positions, a row for each of ${columns} components. Position ${position} and position ${position + shift} are framed.`,
  }, [...names, ...cells, mark(position, ""), mark(position + shift, "clk-later")]);
}

function numbers(frequencies, position, shift) {
  const head = ["pair", `turn for k = ${shift}`, `P[${position}]`, `P[${position + shift}]`, "wavelength"];
  const rows = frequencies.map((frequency, pair) => {
    const both = (p) => `${fixed(Math.sin(frequency * p), 3)}, ${fixed(Math.cos(frequency * p), 3)}`;
    return [
      String(pair), `${fixed((shift * frequency * 180) / Math.PI, 2)}°`,
      both(position), both(position + shift), fixed((2 * Math.PI) / frequency, 1),
    ];
  });
  const cell = (text, index) => (index === 0
    ? make("th", { scope: "row" }, [text])
    : make("td", {}, [text]));
  return make("table", {}, [
    make("caption", {}, ["Sine and cosine of each pair, before and after the shift"]),
    make("thead", {}, [make("tr", {}, head.map((text) => make("th", { scope: "col" }, [text])))]),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map(cell)))),
  ]);
}

export default {
  render({ model, el }) {
    const base = model.get("base");
    const [faces, picture] = [make("div", { class: "clk-faces" }), make("div")];
    const table = make("div", { class: "clk-scroll", tabindex: "0", role: "region", "aria-label": "Numbers of each pair" });
    const update = () => show();
    const position = slider("position p", { max: LAST_POSITION, value: model.get("position") }, update);
    const shift = slider("shift k", { max: LARGEST_SHIFT, value: model.get("shift") }, update);
    const columns = slider("columns d_model", { min: 4, max: 16, step: 2, value: model.get("d_model") }, update);
    const note = "Solid hand: position p. Dashed: position p + k. The sine is how far a hand points to the right, the cosine how far up. Below, each column is a position: blue positive, rust negative.";
    const say = frame(el, "A shift turns every hand", STYLE, row(position, shift, columns), faces, make("p", { class: "fig-note" }, [note]), picture, table);

    function show() {
      const [p, k, width] = [position.get(), shift.get(), columns.get()];
      const frequencies = Array.from({ length: width / 2 }, (_, i) => base ** ((-2 * i) / width));
      put(faces, ...frequencies.map((w, i) => clock(i, w * p, w * (p + k))));
      put(picture, strip(frequencies, p, k));
      put(table, numbers(frequencies, p, k));
      const slowest = frequencies.length - 1;
      say(`From position ${p} to ${p + k}: pair 0 turns by ${fixed((k * 180) / Math.PI, 1)}°, pair ${slowest} by ${fixed((k * frequencies[slowest] * 180) / Math.PI)}°.`);
    }
    show();
  },
};
