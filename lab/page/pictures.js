// What the translator draws: arcs between two columns of words, maps, bars. All colours are the
// page's own, so that light and dark need nothing here.

const SVG = "http://www.w3.org/2000/svg";
const ROW = 30; // pixels of a word's row

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

const percent = (share) => `${share > 0 && share < 0.005 ? "<1" : Math.round(100 * share)}\u202f%`;

// The arcs of one head. `keys` and `queries` are words, `weights[query][key]` their shares; the
// arcs of the chosen query are strong, those of the others faint.
function arcs({ keys, queries, weights, chosen, heads, choose }) {
  const height = ROW * Math.max(keys.length, queries.length);
  const middle = (place) => ROW * (place + 0.5);
  const lines = weights.flatMap((row, query) => row.map((share, key) => ({ share, key, query })))
    .filter(({ share }) => share > 0.02)
    .sort((a, b) => (a.query === chosen) - (b.query === chosen))
    .map(({ share, key, query }) => draw("path", {
      d: `M0 ${middle(key)}C45 ${middle(key)} 55 ${middle(query)} 100 ${middle(query)}`,
      class: query === chosen ? "tr-arc tr-chosen" : "tr-arc",
      "stroke-width": (0.6 + 6 * share).toFixed(2),
      "stroke-opacity": ((query === chosen ? 0.25 : 0.05) + (query === chosen ? 0.75 : 0.35) * share).toFixed(3),
    }));
  const picture = draw("svg", { viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", height, "aria-hidden": "true" }, lines);
  const looked = keys.map((word, key) => {
    const share = weights[chosen]?.[key] ?? 0;
    const item = make("li", {}, [make("span", { class: "tr-share" }, [percent(share)]), make("span", { class: "tr-word" }, [word])]);
    item.style.setProperty("--share", share.toFixed(3));
    return item;
  });
  const asking = queries.map((word, query) => {
    const button = make("button", { type: "button", "aria-pressed": String(query === chosen) }, [word]);
    button.addEventListener("click", () => choose(query));
    button.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") choose(query, true); });
    return make("li", {}, [button]);
  });
  return make("div", { class: "tr-arcs" }, [
    make("span", { class: "tr-head" }, [heads[0]]), make("span"), make("span", { class: "tr-head" }, [heads[1]]),
    make("ul", { class: "tr-keys" }, looked), picture, make("ul", { class: "tr-queries" }, asking),
  ]);
}

// All weights of one head as a grid: a row a query, a column a key.
function map({ keys, queries, weights, chosen, name }) {
  const [cell, left, top] = [22, 84, 78];
  const cells = weights.flatMap((row, query) => row.map((share, key) => draw("rect", {
    x: left + cell * key + 1, y: top + cell * query + 1, width: cell - 2, height: cell - 2, rx: 2, class: "tr-cell", "fill-opacity": share.toFixed(3),
  }, [draw("title", {}, [`${queries[query]} → ${keys[key]}: ${percent(share)}`])])));
  const grid = draw("rect", { x: left, y: top, width: cell * keys.length, height: cell * queries.length, class: "tr-paper" });
  const words = [
    ...queries.map((word, i) => draw("text", { x: left - 6, y: top + cell * (i + 0.5), class: i === chosen ? "tr-strong" : "", "text-anchor": "end", "dominant-baseline": "central" }, [word])),
    ...keys.map((word, i) => draw("text", { transform: `translate(${left + cell * (i + 0.5)} ${top - 6}) rotate(-50)`, "dominant-baseline": "central" }, [word])),
  ];
  const frame = chosen < queries.length ? [draw("rect", { x: left, y: top + cell * chosen, width: cell * keys.length, height: cell, class: "tr-frame" })] : [];
  const size = { width: left + cell * keys.length + 46, height: top + cell * queries.length + 4 };
  return draw("svg", { viewBox: `0 0 ${size.width} ${size.height}`, class: "tr-map", role: "img", "aria-label": name, style: `max-width: ${1.25 * size.width}px` }, [grid, ...cells, ...frame, ...words]);
}

// The same without words, as small as a stamp.
function stamp(weights, columns) {
  const cells = weights.flatMap((row, y) => row.map((share, x) => ({ share, x, y }))).filter(({ share }) => share > 0.04)
    .map(({ share, x, y }) => draw("rect", { x, y, width: 0.94, height: 0.94, class: "tr-cell", "fill-opacity": share.toFixed(2) }));
  return draw("svg", { viewBox: `0 0 ${columns} ${Math.max(weights.length, 1)}`, preserveAspectRatio: "none", "aria-hidden": "true" }, cells);
}

// The likeliest words that could come next.
function bars(words) {
  return make("ol", { class: "tr-bars" }, words.map(({ word, share, taken }) => {
    const item = make("li", taken ? { class: "tr-taken" } : {}, [make("span", { class: "tr-word" }, [word]), make("span", { class: "tr-bar" }), make("span", { class: "tr-share" }, [percent(share)])]);
    item.style.setProperty("--share", share.toFixed(4));
    return item;
  }));
}
