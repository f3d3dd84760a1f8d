// What each target position may attend to, step by step, and what its output depends on after
// several layers. A real table, so that every cell can be read and spoken.

const { make, slider, choice, check, row, put, frame } = course;

const STYLE = `
.dec-scroll { overflow-x: auto; margin-top: 0.8rem; }
.dec-scroll table { border-collapse: collapse; width: 100%; margin: 0; font-size: 0.88rem; color: inherit; }
.dec-scroll caption { caption-side: top; text-align: left; color: var(--quiet); padding: 0 0 0.3rem; }
.dec-scroll :is(th, td) { padding: 0.3rem 0.35rem; text-align: center; border: 1px solid var(--line); }
.dec-scroll th { font-weight: 600; white-space: nowrap; }
.dec-scroll th[scope="row"] { text-align: left; position: sticky; left: 0; background: var(--ground); }
.dec-scroll .dec-source { border-left: 3px solid var(--quiet); }
.dec-scroll .dec-direct { background: color-mix(in srgb, var(--blue) 40%, transparent); }
.dec-scroll .dec-carried { background: color-mix(in srgb, var(--blue) 16%, transparent); }
.dec-scroll .dec-leak { background: color-mix(in srgb, var(--rust) 40%, transparent); font-weight: 700; }
.dec-scroll tr.dec-now > * { border-top: 3px solid var(--blue); border-bottom: 3px solid var(--blue); }
`;

const RULES = [
  { name: "causal: j ≤ i", sees: (i, j) => j <= i },
  { name: "one step too wide: j ≤ i + 1", sees: (i, j) => j <= i + 1 },
  { name: "no mask", sees: () => true },
];

// Which target tokens (columns) an output (row) depends on after some layers.
function reach(count, sees, layers) {
  const step = Array.from({ length: count }, (_, i) => Array.from({ length: count }, (_, j) => sees(i, j)));
  let total = step;
  for (let layer = 1; layer < layers; layer += 1) {
    total = step.map((row) => total[0].map((_, j) => row.some((yes, k) => yes && total[k][j])));
  }
  return { step, total };
}

const listed = (words) =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;

// What stands in a cell: its sign, its class, and what it is called.
function cellFor(direct, reached, future) {
  if (!reached) return ["–", "", "hidden"];
  if (future) return [direct ? "✓!" : "↺!", "dec-leak", "leak"];
  return direct ? ["✓", "dec-direct", "attended to"] : ["↺", "dec-carried", "carried"];
}

export default {
  render({ model, el }) {
    const [source, target, labels, pad] = ["source", "target", "labels", "pad"].map((name) => model.get(name));
    const update = () => show();
    const position = slider("query", { max: target.length - 1, value: 0 }, update, (at) => `${at} (${target[at]})`);
    const layers = slider("layers", { min: 1, max: 6, value: 2 }, update);
    const rule = choice("mask of the self-attention", RULES.map(({ name }, i) => [i, name]), 1, update);
    const hide = check("hide the source's padding", true, update);
    const place = make("div", { class: "dec-scroll", tabindex: 0, role: "region", "aria-label": "Table of what each target position may attend to" });
    const key = make("p", { class: "fig-note" }, ["✓ attended to directly · ↺ reaches the row through other rows, in an earlier layer · ! a later token: a leak · – hidden"]);
    const say = frame(el, "Who sees what", STYLE, row(rule, hide), row(layers, position), place, key);

    function head() {
      const names = [...target, ...source].map((token, j) => make("th", { scope: "col", class: j === target.length ? "dec-source" : "" }, [token]));
      const groups = [make("td"), make("th", { scope: "colgroup", colspan: target.length }, ["target, so far and later"]), make("th", { scope: "colgroup", colspan: source.length, class: "dec-source" }, ["source"])];
      return make("thead", {}, [make("tr", {}, groups), make("tr", {}, [make("th", { scope: "col" }, ["reads → predicts"]), ...names])]);
    }

    function line({ step, total }, i) {
      const cell = ([sign, name, said], extra = "") => make("td", { class: `${name}${extra}`, "aria-label": said }, [sign]);
      const own = target.map((_, j) => cell(cellFor(step[i][j], total[i][j], j > i)));
      const read = source.map((word, j) => {
        const seen = !hide.get() || word !== pad;
        return cell(cellFor(seen, seen, false), j === 0 ? " dec-source" : "");
      });
      return make("tr", { class: i === position.get() ? "dec-now" : "" }, [make("th", { scope: "row" }, [`${target[i]} → ${labels[i]}`]), ...own, ...read]);
    }

    function leaks(total, now) {
      const later = target.filter((_, j) => j > now && total[now][j]);
      if (!later.length) return " Nothing later reaches it.";
      const answer = total[now][now + 1] ? `: the answer ${labels[now]} is among what it has read.` : ".";
      return ` But ${listed(later)} ${later.length > 1 ? "reach" : "reaches"} it too${answer}`;
    }

    function show() {
      const [depth, now] = [layers.get(), position.get()];
      const found = reach(target.length, RULES[Number(rule.get())].sees, depth);
      const caption = depth === 1 ? "What each row may attend to" : `What each row depends on, ${depth} layers`;
      put(place, make("table", {}, [make("caption", {}, [caption]), head(), make("tbody", {}, target.map((_, i) => line(found, i)))]));
      const own = target.filter((_, j) => j <= now && found.total[now][j]);
      const read = source.filter((word) => !hide.get() || word !== pad);
      const padding = read.includes(pad) ? " Padding is read as if it were a word." : "";
      const away = target.filter((_, i) => found.total[i].some((yes, j) => yes && j > i)).length;
      const after = `After ${depth} ${depth > 1 ? "layers" : "layer"}`;
      const all = away ? `${after} ${away} of ${target.length} rows see the future.` : `${after} no row sees the future.`;
      say(`Row ${now} has ${target[now]} as input and must predict ${labels[now]}, from ${listed(own)} and from the source: ${listed(read)}.${padding}${leaks(found.total, now)} ${all}`);
    }
    show();
  },
};
