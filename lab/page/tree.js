// Beam search as a tree: a column a step, the likeliest on top; what was dropped is faint.

const [STEP, LINE, DROPPED] = [92, 30, 2]; // pixels of a column and of a row; how many dropped ones a step shows

// Where each node that is shown stands: {node, x, y}.
function places(nodes) {
  const depths = Math.max(...nodes.map((node) => node.depth));
  return range(depths + 1).flatMap((depth) => {
    const here = nodes.filter((node) => node.depth === depth).sort((a, b) => b.total - a.total);
    const kept = here.filter((node) => node.fate !== "dropped");
    const shown = [...kept, ...here.filter((node) => node.fate === "dropped").slice(0, DROPPED)];
    return shown.map((node, row) => ({ node, x: 4 + STEP * depth, y: LINE * (row + 0.5) + 4 }));
  });
}

function tree({ nodes, best, word }) {
  const shown = places(nodes);
  const at = new Map(shown.map((place) => [place.node, place]));
  const onBest = new Set();
  for (let node = best; node; node = node.parent) onBest.add(node);
  const mark = (node) => (onBest.has(node) ? "tr-best" : `tr-${node.fate}`);
  const edges = shown.filter(({ node }) => node.parent).sort((a, b) => onBest.has(a.node) - onBest.has(b.node)).map(({ node, x, y }) => {
    const from = at.get(node.parent);
    const start = from.x + STEP - 26;
    return draw("path", { d: `M${start} ${from.y}C${start + 14} ${from.y} ${x - 16} ${y} ${x - 3} ${y}`, class: `tr-edge ${mark(node)}` });
  });
  const labels = shown.map(({ node, x, y }) => {
    const share = node.parent ? Math.exp(node.total) : 1;
    return draw("g", { class: `tr-node ${mark(node)}` }, [
      draw("text", { x, y: y - 1 }, [word(node.id)]),
      draw("text", { x, y: y + 10, class: "tr-small" }, [node.parent ? percent(share) : ""]),
    ]);
  });
  const width = Math.max(...shown.map(({ x }) => x)) + STEP;
  const height = Math.max(...shown.map(({ y }) => y)) + LINE / 2 + 6;
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, [...edges, ...labels]);
}
