// Greedy decoding and beam search, as chapter 9 builds them, with all that they looked at on the way.

// The likeliest ids, the likeliest first; of equals the smaller id.
function likeliest(values, count) {
  return range(values.length).sort((a, b) => values[b] - values[a] || a - b).slice(0, count);
}

// Write a sentence: a list of steps {id, logProbs, state}, the last of which may be the end.
function greedy(model, sentence) {
  return carryOn(model, model.encode(model.ids(sentence)));
}

// The same for a source that has been read, after a beginning that is given.
function carryOn(model, source, beginning = []) {
  let state = model.step(model.begin(source), model.bos);
  for (const id of beginning) state = model.step(state, id);
  const steps = [];
  while (beginning.length + steps.length < model.longest - 1) {
    const logProbs = logSoftmax(state.logits);
    const [id] = likeliest(logProbs, 1);
    steps.push({ id, logProbs, state });
    if (id === model.eos) break;
    if (state.ids.length === model.longest) break;
    state = model.step(state, id);
  }
  const ids = steps.map((step) => step.id).filter((id, place) => id !== model.eos || place < steps.length - 1);
  return { source, steps, ids };
}

const penalty = (n, alpha) => ((5 + n) / 6) ** alpha;

// Keep the `size` likeliest hypotheses at each step. `nodes` is the tree of all that was looked at:
// {parent, id, total, depth, fate}, fate being "live", "dropped" or "finished".
function beam(model, sentence, size = 4, alpha = 0.6) {
  const source = model.encode(model.ids(sentence));
  const root = { parent: null, id: model.bos, total: 0, depth: 0, fate: "live", state: model.step(model.begin(source), model.bos) };
  const nodes = [root];
  const ended = [];
  let live = [root];
  for (let n = 1; n < model.longest && live.length; n += 1) {
    // no hypothesis outside the `size` likeliest of its parent can be among the `size` of all
    const grown = live.flatMap((parent) => {
      const logProbs = logSoftmax(parent.state.logits);
      return likeliest(logProbs, size).map((id) => ({ parent, id, total: parent.total + logProbs[id], depth: n, fate: "dropped" }));
    }).sort((a, b) => b.total - a.total);
    nodes.push(...grown);
    const kept = grown.slice(0, size);
    live = kept.filter((one) => one.id !== model.eos);
    for (const one of kept.filter((each) => each.id === model.eos)) {
      one.fate = "finished";
      one.score = one.total / penalty(n, alpha);
      ended.push(one);
    }
    for (const one of live) {
      one.fate = "live";
      if (n < model.longest - 1) one.state = model.step(one.parent.state, one.id);
    }
  }
  if (!ended.length) ended.push(...live.map((one) => Object.assign(one, { score: one.total / penalty(one.depth, alpha) })));
  ended.sort((a, b) => b.score - a.score);
  const path = (node) => (node.parent ? [...path(node.parent), node.id] : []);
  const ids = path(ended[0]).filter((id) => id !== model.eos);
  return { nodes, finished: ended, best: ended[0], ids, path };
}
