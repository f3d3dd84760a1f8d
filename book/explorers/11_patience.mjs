// Early stopping on a record of held-out losses: how long one waits decides where training stops and
// which weights are kept.

const { make, draw, fixed, slider, row, put, frame } = course;

const [STEP, TALL, FOOT] = [46, 150, 44]; // pixels of a record's column, of the largest loss, and below
const STYLE = `
.pat-picture { margin-top: 0.9rem; }
.pat-unseen { opacity: 0.3; }
.pat-other { fill: var(--quiet); fill-opacity: 0.45; }
.fig svg .pat-best { fill: var(--blue); font-weight: 600; }
.pat-stop { stroke: var(--rust); stroke-width: 2; stroke-dasharray: 5 4; }
.fig svg text.pat-end { fill: var(--rust); font-weight: 600; }
`;

function choose(losses, patience) {
  let best = 0;
  for (let i = 0; i < losses.length; i += 1) {
    if (losses[i] < losses[best]) best = i;
    if (i - best >= patience) return [best, i];
  }
  return [best, losses.length - 1];
}

function picture(losses, best, stopped) {
  const scale = TALL / Math.max(...losses);
  const columns = losses.map((loss, i) => {
    const [x, height] = [STEP * i, scale * loss];
    return draw("g", i > stopped ? { class: "pat-unseen" } : {}, [
      draw("rect", { x: x + 6, y: TALL - height + 20, width: STEP - 12, height, rx: 3, class: i === best ? "pat-best" : "pat-other" }),
      draw("text", { x: x + STEP / 2, y: TALL - height + 15, "text-anchor": "middle", class: i === best ? "pat-best" : "" }, [fixed(loss)]),
      draw("text", { x: x + STEP / 2, y: TALL + 36, "text-anchor": "middle", class: i === best ? "pat-best" : "fig-faint" }, [i === best ? "kept" : String(i)]),
    ]);
  });
  const end = STEP * (stopped + 1);
  const stop = [draw("line", { x1: end, x2: end, y1: 6, y2: TALL + 20, class: "pat-stop" }), draw("text", { x: end - 4, y: TALL + 56, "text-anchor": "end", class: "pat-end" }, ["stop"])];
  const [width, height] = [STEP * losses.length + 4, TALL + 20 + FOOT];
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Held-out losses of records 0 to ${losses.length - 1}: ${losses.map((loss) => fixed(loss)).join(", ")}` }, [...columns, ...stop]);
}

export default {
  render({ model, el }) {
    const losses = model.get("losses");
    const patience = slider("patience", { min: 1, max: losses.length - 1, value: 4 }, () => show());
    const place = make("div", { class: "fig-scroll pat-picture", tabindex: 0, role: "region", "aria-label": "Held-out loss of each record" });
    const say = frame(el, "How long to wait", STYLE, row(patience), place);

    function show() {
      const [best, stopped] = choose(losses, patience.get());
      put(place, picture(losses, best, stopped));
      say(`Patience ${patience.get()}: training stops at record ${stopped}; the weights of record ${best} are kept, with a loss of ${fixed(losses[best])}.`);
    }
    show();
  },
};
