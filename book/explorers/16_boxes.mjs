// Seven boxes that hide a small model: what its rows depend on is all that can be found out, by one
// experiment at a time. The reader names the part.

const { make, range, choice, push, row, put, frame, generator } = course;

const STYLE = `
.box-list { margin: 1rem 0 0.6rem; }
.box-rows { display: flex; gap: 6px; flex-wrap: wrap; margin: 0; padding: 0; list-style: none; }
.box-rows li { width: 6.2rem; margin: 0; padding: 0.45rem 0; text-align: center; border-radius: 5px; border: 1px solid var(--line); background: var(--paper); font-variant-numeric: tabular-nums; }
.box-rows .box-moved { background: var(--blue); color: white; }
`;
const FAULTS = ["right", "future", "padding", "company", "reading", "dropout", "cache"];

// For each experiment: whether a row moves, in a model with this fault.
const EXPERIMENTS = {
  "call it again": () => false,
  "replace the last target token": (fault, i, last) => i === last || fault === "future",
  "add padding to the source": (fault) => fault === "padding",
  "put a sentence beside it": (fault) => fault === "company",
  "reverse the source": (fault) => fault !== "reading",
  "write token by token": (fault, i, last) => (fault === "cache" && i > 0) || (fault === "future" && i < last),
};

function mixed(values, even) {
  const left = [...values];
  return values.map(() => left.splice(Math.floor(even() * left.length), 1)[0]);
}

export default {
  render({ model, el }) {
    const count = model.get("tokens");
    const hidden = mixed(FAULTS, generator(model.get("seed")).even);
    const names = hidden.map((_, i) => `box ${i + 1}`);
    let used = 0;
    const asked = range(hidden.length).map(() => new Set());
    const list = make("div", { class: "box-list" });
    const box = choice("ask", names.map((name, i) => [i, name]), 0, () => clear());
    const buttons = Object.keys(EXPERIMENTS).map((name) => push(name, () => ask(name)));
    const verdict = choice("it is", FAULTS.map((name) => [name, name]), "right", () => {});
    const judge = push("Judge", () => decide());
    const say = frame(el, "What is in the box?", STYLE, row(box), row(...buttons), list, row(verdict, judge));
    const which = () => Number(box.get());

    function shown(moves) {
      put(list, make("ol", { class: "box-rows" }, moves.map((moved, i) => make("li", moved ? { class: "box-moved" } : {}, [moved ? `row ${i} moves` : `row ${i}`]))));
    }
    function clear() {
      shown(range(count).map(() => false));
      say(`${names[which()]}: ${count} rows of logits. Nothing asked yet.`);
    }
    function ask(name) {
      const fault = hidden[which()];
      const moves = range(count).map((i) => fault === "dropout" || EXPERIMENTS[name](fault, i, count - 1));
      used += 1;
      asked[which()].add(name);
      shown(moves);
      const moved = moves.flatMap((one, i) => (one ? [i] : []));
      say(`${names[which()]}, ${name}: ${moved.length ? `rows ${moved.join(", ")} move` : "no row moves"}. ${used} experiments so far.`);
    }
    function decide() {
      const guess = verdict.get();
      const fault = hidden[which()];
      const enough = guess === "right" && asked[which()].size < Object.keys(EXPERIMENTS).length ? " You have not asked everything, though." : "";
      say(guess === fault ? `${names[which()]} is ${guess === "right" ? "right" : `wrong: ${guess}`}. So it is.${enough}` : `${names[which()]}: no, something else is so.`);
    }
    clear();
  },
};
