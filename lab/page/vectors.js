// Chapters 5 and 6: one token's vector on its way through a layer, and through the stack.

const PADDING = 2; // tokens of padding behind the sentence
const ON_ITS_WAY = [
  ["rows", "what comes in"], ["made", "attention adds"], ["sum", "the sum"], ["out", "after the norm"],
  ["made", "the network adds"], ["sum", "the sum"], ["out", "after the norm"],
];

// A vector as bars around a line, all rows of a picture to one scale.
function bristles(vector, most, kind, name) {
  const path = [...vector].map((value, x) => `M${x + 0.5} 0V${(-value / most).toFixed(3)}`).join("");
  return draw("svg", { viewBox: `0 -1 ${vector.length} 2`, preserveAspectRatio: "none", class: `tr-bristles ${kind}`, role: "img", "aria-label": name }, [
    draw("path", { d: `M0 0H${vector.length}`, class: "tr-zero" }), draw("path", { d: path }),
  ]);
}

class VectorLens extends Lens {
  read(sentence) {
    this.ids = [...this.model.ids(sentence), ...Array(this.padding()).fill(this.model.sizes.pad_id)];
    this.source = this.model.encode(this.ids);
  }

  padding() {
    return 0;
  }

  start(word) {
    const place = this.words().indexOf(word ?? "");
    this.chosen = place < 0 ? 1 : place;
  }

  words() {
    return this.ids.map((id) => this.model.source.words[id]);
  }

  choose(place) {
    this.chosen = place;
    this.show();
  }

  switch(switches) {
    this.model.switches = { ...WHOLE, ...switches };
    this.source = this.model.encode(this.ids);
    this.show();
  }
}

class LayerLens extends VectorLens {
  parts() {
    this.layer = 0;
    const layers = Object.fromEntries(this.model.layers("encoder").map((_, number) => [number, `layer ${number + 1}`]));
    const norms = this.model.layers("encoder").flatMap((layer) => [`${layer}.norm1`, `${layer}.norm2`]);
    const controls = make("div", { class: "tr-row" }, [
      labelled("Encoder", select(layers, (number) => { this.layer = Number(number); this.show(); })),
      labelled("without its norms", check((off) => this.switch({ norms: new Set(off ? norms : []) })), true),
    ]);
    return [this.asksSentence("Read it"), this.chips, controls, this.picture, this.line];
  }

  // The seven vectors of the chosen token: {name, kind, vector}.
  way() {
    const [first, second] = this.source.stages.slice(2 * this.layer, 2 * this.layer + 2);
    return ON_ITS_WAY.map(([kind, name], at) => ({ name, kind, vector: (at < 4 ? first : second)[kind][this.chosen] }));
  }

  show() {
    this.showChips("The token to follow", this.words(), [this.chosen], (place) => this.choose(place));
    const way = this.way();
    const most = Math.max(...way.map(({ vector }) => largest(vector)));
    const rows = way.map(({ name, kind, vector }) => make("li", { class: `tr-${kind}` }, [
      make("span", { class: "tr-word" }, [kind === "out" && this.model.switches.norms.size ? "no norm" : name]), bristles(vector, most, `tr-${kind}`, `${vector.length} numbers, ${name}`), make("span", { class: "tr-share" }, [`size ${decimal(size(vector))}`]),
    ]));
    swap(this.picture, make("ol", { class: "tr-way" }, rows));
    const [given, added, sum, out] = way.map(({ vector }) => decimal(size(vector)));
    this.say(`“${this.words()[this.chosen]}” comes in with numbers of size ${given}; attention adds ${added}, the sum has ${sum}, and after the norm it is ${out}.`);
  }
}

// How far each token's vector moves when another is hidden from all: [moved][hidden], in lengths.
function influence(model, ids) {
  const end = (hidden) => model.encode(ids, hidden).stages.at(-1).out;
  const whole = end(-1);
  const without = ids.map((id, place) => (id === model.sizes.pad_id && model.switches.padding ? whole : end(place)));
  return whole.map((row, query) => without.map((rows) => size(row.map((value, i) => value - rows[query][i])) / size(row)));
}

class StackLens extends VectorLens {
  padding() {
    return PADDING;
  }

  parts() {
    const controls = make("div", { class: "tr-row" }, [labelled("let all look at the padding", check((on) => this.switch({ padding: !on })), true)]);
    return [this.asksSentence("Read it"), controls, this.picture, this.line];
  }

  // The chosen token's vector as it enters, and after each layer.
  levels() {
    const { stages } = this.source;
    return [stages[0].rows, ...stages.filter((_, at) => at % 2).map(({ out }) => out)].map((rows) => rows[this.chosen]);
  }

  show() {
    const words = this.words();
    const weights = influence(this.model, this.ids);
    const levels = this.levels();
    const most = Math.max(...levels.map(largest));
    const strips = levels.map((vector, level) => {
      const name = level ? `after layer ${level}` : "comes in";
      return make("li", {}, [make("span", { class: "tr-share" }, [name]), strip(vector, most, `the vector of ${words[this.chosen]}, ${name}`)]);
    });
    swap(this.picture, make("div", {}, [
      arcs({ keys: words, queries: words, weights, chosen: this.chosen, heads: ["hide this", "and this moves"], choose: (place) => this.choose(place) }),
      make("ol", { class: "tr-levels" }, strips),
    ]));
    this.say(this.summary(words, weights[this.chosen]));
  }

  summary(words, moves) {
    const others = range(words.length).filter((place) => place !== this.chosen && !words[place].startsWith("<"));
    const [first, second] = others.sort((a, b) => moves[b] - moves[a]);
    const told = `“${words[this.chosen]}” draws most on “${words[first]}” and “${words[second]}”.`;
    if (this.model.switches.padding) return `${told} Nothing comes from the padding.`;
    const text = this.model.text(carryOn(this.model, this.source).ids);
    return `${told} Now padding counts as well: hiding one moves it by ${percent(moves.at(-1))}. Translation: “${text}”`;
  }
}
