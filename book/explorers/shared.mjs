// What all explorers share: elements, named controls, one frame with one live region, heat maps. The
// build puts it before each of them, as `course`.

const SVG = "http://www.w3.org/2000/svg";
const STYLE = `
.fig { color: var(--pst-color-text-base, #1c2126); --blue: var(--pst-color-primary, #3a4fa3); --rust: var(--course-trap, #a8440f); --quiet: var(--pst-color-text-muted, #5b636c); --line: var(--pst-color-border, #c9ccd3); --paper: var(--pst-color-surface, #f5f6fa); --ground: var(--pst-color-background, #fff); --tint: var(--pst-color-primary-bg, #e8ebf8); container-type: inline-size; }
.fig p { margin: 0; }
.fig :is(ul, ol) { list-style: none; margin: 0; padding: 0; }
.fig .fig-title { font-weight: 600; margin-bottom: 0.6rem; }
.fig .fig-note { font-size: 0.85rem; color: var(--quiet); margin: 0.5rem 0 0.25rem; }
.fig .fig-said { margin-top: 0.8rem; min-height: 1.5em; }
.fig-row { display: flex; flex-wrap: wrap; gap: 0.5rem 1.3rem; align-items: end; }
.fig-row + .fig-row { margin-top: 0.5rem; }
.fig-slider { display: flex; flex-direction: column; flex: 1 1 10rem; min-width: 0; max-width: 22rem; }
.fig-choice { display: flex; flex-direction: column; min-width: 0; max-width: 100%; }
.fig-check { display: inline-flex; gap: 0.45rem; align-items: center; min-height: 32px; }
.fig input[type="range"] { width: 100%; min-height: 24px; accent-color: var(--blue); }
.fig input[type="checkbox"] { width: 18px; height: 18px; margin: 0; flex: none; accent-color: var(--blue); }
.fig :is(select, button) { font: inherit; color: inherit; min-height: 32px; max-width: 100%; padding: 0.15rem 0.7rem; border: 1px solid var(--line); border-radius: 6px; background: var(--ground); cursor: pointer; }
.fig button[aria-pressed="true"] { background: var(--tint); border-color: var(--blue); font-weight: 600; }
.fig button[aria-disabled="true"] { opacity: 0.45; cursor: default; }
.fig :is(select, button, input, [tabindex]):focus-visible { outline: 3px solid var(--blue); outline-offset: 2px; }
.fig svg { display: block; max-width: 100%; height: auto; }
.fig svg text { fill: currentColor; font-size: 13px; }
.fig svg .fig-faint { fill: var(--quiet); font-size: 11.5px; }
.fig-scroll { overflow-x: auto; }
.fig .fig-scroll svg { max-width: none; }
.fig-plus { fill: var(--blue); }
.fig-minus { fill: var(--rust); }
.fig-paper { fill: var(--paper); }
.fig-ring { fill: none; stroke: currentColor; stroke-width: 2; }
`;

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const make = (name, attributes = {}, children = []) => filled(document.createElement(name), attributes, children);
const draw = (name, attributes = {}, children = []) => filled(document.createElementNS(SVG, name), attributes, children);
const range = (count) => [...Array(count).keys()];

function fixed(value, digits = 2) {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

// A slider with its name and value; `tell` writes the value.
function slider(name, { min = 0, max, step = 1, value }, act, tell = (number) => fixed(number, 0)) {
  const shown = make("span");
  const input = make("input", { type: "range", min, max, step, value });
  const get = () => Number(input.value);
  const show = () => {
    shown.textContent = tell(get());
    input.setAttribute("aria-valuetext", tell(get()));
  };
  const set = (number) => { input.value = number; show(); };
  input.addEventListener("input", () => { show(); act(get()); });
  show();
  return { element: make("label", { class: "fig-slider" }, [make("span", {}, [`${name} = `, shown]), input]), get, set };
}

// A list to choose from; `options` are pairs of value and text.
function choice(name, options, value, act) {
  const input = make("select", {}, options.map(([one, text]) => make("option", { value: one }, [text])));
  input.value = value;
  input.addEventListener("change", () => act(input.value));
  return { element: make("label", { class: "fig-choice" }, [make("span", {}, [name]), input]), get: () => input.value, set: (one) => { input.value = one; } };
}

function check(name, checked, act) {
  const input = make("input", { type: "checkbox" });
  input.checked = checked;
  input.addEventListener("change", () => act(input.checked));
  return { element: make("label", { class: "fig-check" }, [input, name]), get: () => input.checked };
}

function push(text, act, attributes = {}) {
  const button = make("button", { type: "button", ...attributes }, [text]);
  button.addEventListener("click", act);
  return button;
}

const row = (...controls) => make("div", { class: "fig-row" }, controls.map((one) => one.element ?? one));

// New content in a place; the button that had the keyboard has it afterwards too.
function put(place, ...content) {
  const held = [...place.querySelectorAll("button")].indexOf(document.activeElement);
  place.replaceChildren(...content);
  if (held >= 0) place.querySelectorAll("button")[held]?.focus({ preventScroll: true });
}

// The figure itself; gives the function that says what has changed.
function frame(el, title, style, ...parts) {
  const said = make("p", { class: "fig-said", "aria-live": "polite" });
  el.append(make("div", { class: "fig", role: "group", "aria-label": title }, [
    make("style", {}, [STYLE + style]), make("p", { class: "fig-title" }, [title]), ...parts, said,
  ]));
  return (text) => { said.textContent = text; };
}

// Numbers as a grid: blue above zero, rust below, full colour at `most`. `ring(i, j)` frames a cell,
// `write` puts its number into it.
function heat({ name, values, rows, columns, most = 1, ring = () => false, write, cell = 30, left = 64 }) {
  const top = columns ? 20 : 2;
  const tall = Math.min(cell, 28);
  const cells = values.flatMap((line, i) => line.map((value, j) => draw("g", {}, [
    draw("rect", { x: left + cell * j + 1, y: top + tall * i + 1, width: cell - 2, height: tall - 2, rx: 3, class: value < 0 ? "fig-minus" : "fig-plus", "fill-opacity": Math.min(1, Math.abs(value) / most || 0).toFixed(3) }),
    ...(write ? [number(left + cell * (j + 0.5), top + tall * (i + 0.5), write(value, i, j), Math.abs(value) / most > 0.55)] : []),
    draw("title", {}, [`${rows?.[i] ?? i}, ${columns?.[j] ?? j}: ${fixed(value)}`]),
  ])));
  const rings = values.flatMap((line, i) => line.flatMap((_, j) => (ring(i, j) ? [draw("rect", { x: left + cell * j + 1, y: top + tall * i + 1, width: cell - 2, height: tall - 2, rx: 3, class: "fig-ring" })] : [])));
  const [width, height] = [left + cell * values[0].length + 1, top + tall * values.length + 2];
  const words = [
    ...(rows ?? []).map((text, i) => draw("text", { x: left - 6, y: top + tall * (i + 0.5), "text-anchor": "end", "dominant-baseline": "central" }, [text])),
    ...(columns ?? []).map((text, j) => draw("text", { x: left + cell * (j + 0.5), y: 13, "text-anchor": "middle", class: "fig-faint" }, [text])),
  ];
  const paper = draw("rect", { x: left, y: top, width: width - left, height: height - top, rx: 3, class: "fig-paper" });
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": name }, [paper, ...cells, ...rings, ...words]);
}

function number(x, y, text, onDark) {
  return draw("text", { x, y, "text-anchor": "middle", "dominant-baseline": "central", style: onDark ? "fill: var(--ground); font-size: 12px" : "font-size: 12px" }, [text]);
}

function softmax(scores) {
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

// Random numbers that are the same on each visit: even in [0, 1), and standard normal.
function generator(seed) {
  let state = seed >>> 0;
  const even = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - even())) * Math.cos(2 * Math.PI * even());
  return { even, normal };
}

export default { make, draw, range, fixed, slider, choice, check, push, row, put, frame, heat, softmax, generator };
