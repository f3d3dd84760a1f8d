// The sinusoidal table as clocks: each pair of columns is a hand, and a shift turns every hand.

const LAST_POSITION = 40;
const LARGEST_SHIFT = 12;
const SVG = "http://www.w3.org/2000/svg";

const STYLE = `
.clocks { color: var(--pst-color-text-base, #1c2126); font-size: 0.95rem; }
.clocks .controls { display: grid; gap: 0.35rem 1rem; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); }
.clocks label { display: flex; flex-direction: column; }
.clocks input { width: 100%; min-height: 2rem; accent-color: var(--pst-color-primary, #0a4c97); }
.clocks .faces { display: grid; gap: 0.5rem; grid-template-columns: repeat(auto-fill, minmax(6.2rem, 1fr)); margin: 0.8rem 0; }
.clocks figure { margin: 0; text-align: center; }
.clocks figcaption { font-size: 0.85rem; }
.clocks svg { display: block; width: 100%; height: auto; }
.clocks .faces svg { max-width: 7.5rem; margin: 0 auto; }
.clocks .scroll { overflow-x: auto; }
.clocks p { margin: 0.6rem 0; }
.clocks caption { caption-side: top; text-align: left; }
.clocks table { border-collapse: collapse; margin: 0.6rem 0; font-variant-numeric: tabular-nums; }
.clocks th, .clocks td { border-bottom: 1px solid var(--pst-color-border, #8b929a); padding: 0.2rem 0.5rem; text-align: right; white-space: nowrap; }
.clocks .face { fill: none; stroke: var(--pst-color-text-muted, #5a6270); stroke-width: 1.5; }
.clocks .hand { stroke: var(--pst-color-text-base, #1c2126); stroke-width: 4; stroke-linecap: round; }
.clocks .later { stroke: var(--pst-color-primary, #0a4c97); stroke-dasharray: 6 5; }
.clocks .mark { fill: none; stroke: var(--pst-color-text-base, #1c2126); stroke-width: 1.5; }
.clocks .mark.later { stroke-dasharray: 4 3; }
`;

function make(name, attributes = {}, children = []) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function draw(name, attributes = {}, children = []) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function fixed(value, digits = 3) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text;
}

function slider(text, attributes, onInput) {
  const value = make("span");
  const input = make("input", { type: "range", ...attributes });
  const show = () => { value.textContent = input.value; };
  input.addEventListener("input", () => { show(); onInput(); });
  show();
  const element = make("label", {}, [make("span", {}, [`${text}: `, value]), input]);
  return { element, get: () => Number(input.value) };
}

function hand(angle, extra) {
  const x = 50 + 38 * Math.sin(angle);
  const y = 50 - 38 * Math.cos(angle);
  return draw("line", { x1: 50, y1: 50, x2: x, y2: y, class: `hand ${extra}` });
}

function clock(pair, now, later) {
  const description = `Pair ${pair}: the hand stands at ${fixed(now, 2)} radians, after the shift at ${fixed(later, 2)}.`;
  const picture = draw("svg", { viewBox: "0 0 100 100", role: "img", "aria-label": description }, [
    draw("circle", { cx: 50, cy: 50, r: 44, class: "face" }),
    hand(later, "later"),
    hand(now, ""),
  ]);
  return make("figure", {}, [picture, make("figcaption", {}, [`pair ${pair}`])]);
}

function strip(frequencies, position, shift) {
  const columns = 2 * frequencies.length;
  const [width, height] = [8, 10];
  const positions = LAST_POSITION + LARGEST_SHIFT + 1;
  const cells = [];
  for (let p = 0; p < positions; p += 1) {
    for (let c = 0; c < columns; c += 1) {
      const angle = p * frequencies[Math.floor(c / 2)];
      const value = c % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
      cells.push(draw("rect", {
        x: p * width, y: c * height, width, height,
        fill: value < 0 ? "#d4590b" : "#1c67ad", "fill-opacity": Math.abs(value).toFixed(2),
      }));
    }
  }
  const mark = (p, extra) => draw("rect", {
    x: p * width, y: 0.75, width, height: columns * height - 1.5, class: `mark ${extra}`,
  });
  return draw("svg", {
    viewBox: `0 0 ${positions * width} ${columns * height}`, role: "img",
    "aria-label": `The table lying on its side: a column for each of ${positions} positions, a row for each of ${columns} components. Position ${position} and position ${position + shift} are framed.`,
  }, [...cells, mark(position, ""), mark(position + shift, "later")]);
}

function numbers(frequencies, position, shift) {
  const head = ["pair", `turn for k = ${shift}`, `P[${position}]`, `P[${position + shift}]`, "wavelength"];
  const rows = frequencies.map((frequency, pair) => {
    const both = (p) => `${fixed(Math.sin(frequency * p))}, ${fixed(Math.cos(frequency * p))}`;
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
    const faces = make("div", { class: "faces" });
    const picture = make("div");
    const table = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers of each pair" });
    const summary = make("p", { "aria-live": "polite" });

    const update = () => {
      const [p, k, width] = [position.get(), shift.get(), columns.get()];
      const frequencies = Array.from({ length: width / 2 }, (_, i) => base ** ((-2 * i) / width));
      faces.replaceChildren(...frequencies.map((w, i) => clock(i, w * p, w * (p + k))));
      picture.replaceChildren(strip(frequencies, p, k));
      table.replaceChildren(numbers(frequencies, p, k));
      const slowest = frequencies.length - 1;
      summary.textContent = `From position ${p} to ${p + k}: pair 0 turns by ${fixed((k * 180) / Math.PI, 1)}°, `
        + `pair ${slowest} by ${fixed((k * frequencies[slowest] * 180) / Math.PI, 2)}°.`;
    };

    const position = slider("position p", { min: 0, max: LAST_POSITION, value: model.get("position") }, () => update());
    const shift = slider("shift k", { min: 0, max: LARGEST_SHIFT, value: model.get("shift") }, () => update());
    const columns = slider("columns d_model", { min: 4, max: 16, step: 2, value: model.get("d_model") }, () => update());

    const legend = "Solid hand: position p. Dashed hand: position p + k. The sine is how far a hand points to the right, "
      + "the cosine how far it points up; at position 0 all hands point straight up. Below, blue is positive, orange negative.";
    el.append(make("div", { class: "clocks" }, [
      make("style", {}, [STYLE]),
      make("div", { class: "controls" }, [position.element, shift.element, columns.element]),
      faces,
      make("p", {}, [legend]),
      picture,
      summary,
      table,
    ]));
    update();
  },
};
