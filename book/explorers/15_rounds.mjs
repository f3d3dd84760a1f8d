// Twelve tokens, each a direction, hashed into buckets, sorted and cut into chunks: what one of them
// looks at in a round, and which of its neighbours it has met by then.

const { make, range, slider, choice, row, put, frame, generator } = course;

const ANGLES = [20, 200, 95, 35, 310, 110, 10, 215, 80, 330, 125, 25];
const NEAR = 20; // degrees
const STYLE = `
.rnd-row { display: flex; flex-wrap: wrap; gap: 0.5rem 0.8rem; margin-top: 0.9rem !important; }
.rnd-row > li { display: flex; gap: 2px; padding: 4px; border: 1px solid var(--line); border-radius: 6px; }
.rnd-token { display: flex; flex-direction: column; align-items: center; min-width: 2.3rem; padding: 2px 3px; border-radius: 4px; background: var(--paper); font-variant-numeric: tabular-nums; line-height: 1.25; }
.rnd-token > :first-child { font-weight: 600; }
.rnd-token > :last-child { font-size: 0.78rem; color: var(--quiet); }
.rnd-token.rnd-seen { background: var(--tint); outline: 2px solid var(--blue); }
.rnd-token.rnd-query { outline: 2px solid var(--rust); }
`;

const radians = (degrees) => (degrees * Math.PI) / 180;
const apart = (one, other) => Math.abs(((ANGLES[one] - ANGLES[other] + 540) % 360) - 180);

// Each token's bucket in a round: the largest of products with directions and their opposites.
function hashed(round, buckets) {
  const { normal } = generator(31 * round + 7);
  const turns = range(buckets / 2).map(() => [normal(), normal()]);
  return ANGLES.map((angle) => {
    const products = turns.map(([a, b]) => a * Math.cos(radians(angle)) + b * Math.sin(radians(angle)));
    const both = [...products, ...products.map((one) => -one)];
    return both.indexOf(Math.max(...both));
  });
}

// The sorted row, and the places that a token looks at in this round.
function looked(query, round, buckets, length) {
  const names = hashed(round, buckets);
  const order = range(ANGLES.length).sort((a, b) => names[a] - names[b] || a - b);
  const chunk = (token) => Math.floor(order.indexOf(token) / length);
  const near = (other) => [0, 1].includes(chunk(query) - chunk(other));
  const keys = range(query).filter((other) => names[other] === names[query] && near(other));
  return { names, order, keys: keys.length ? keys : [query] };
}

export default {
  render({ model, el }) {
    const update = () => show();
    const query = choice("token that looks", range(ANGLES.length).map((i) => [i, `${i}`]), model.get("query"), update);
    const buckets = choice("buckets", [2, 4, 8].map((b) => [b, `${b}`]), 4, update);
    const length = slider("length of a chunk", { min: 1, max: 12, value: 3 }, update);
    const round = slider("round", { min: 1, max: 8, value: 1 }, update);
    const place = make("div");
    const note = make("p", { class: "fig-note" }, ["The sorted row, chunk by chunk: place in the text, direction, bucket. Framed: the token that looks, and what it looks at."]);
    const say = frame(el, "What a token meets in a round", STYLE, row(query, buckets), row(length, round), note, place);

    function token(i, names, keys, asked) {
      const classes = ["rnd-token", ...(keys.includes(i) ? ["rnd-seen"] : []), ...(i === asked ? ["rnd-query"] : [])];
      const arrow = make("span", { "aria-hidden": "true", style: `transform: rotate(${-ANGLES[i]}deg)` }, ["→"]);
      return make("span", { class: classes.join(" ") }, [make("span", {}, [`${i}`]), arrow, make("span", {}, [`b${names[i]}`])]);
    }

    function show() {
      const [asked, count, size, last] = [Number(query.get()), Number(buckets.get()), length.get(), round.get()];
      const { names, order, keys } = looked(asked, last, count, size);
      const chunks = range(Math.ceil(order.length / size)).map((c) => order.slice(c * size, (c + 1) * size));
      put(place, make("ol", { class: "rnd-row", "aria-label": "chunks" }, chunks.map((chunk) => make("li", {}, chunk.map((i) => token(i, names, keys, asked))))));
      const close = range(asked).filter((i) => apart(i, asked) <= NEAR);
      const met = new Set(range(last).flatMap((r) => looked(asked, r + 1, count, size).keys));
      const missed = close.filter((i) => !met.has(i));
      const seen = keys[0] === asked ? "itself alone" : keys.join(", ");
      const rounds = last === 1 ? "round 1" : `rounds 1 to ${last}`;
      const rest = close.length ? `Of its earlier neighbours ${close.join(", ")} it has met ${close.length - missed.length} of ${close.length} in ${rounds}.` : "It has no earlier neighbour.";
      const cut = `${chunks.length} ${chunks.length > 1 ? "chunks" : "chunk"} of ${size}`;
      say(`In round ${last}, in ${cut}, token ${asked} looks at ${seen}. ${rest}`);
    }
    show();
  },
};
