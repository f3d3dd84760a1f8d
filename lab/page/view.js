// The translator as a reader meets it. One state, one `show` that draws all of it again; buttons
// that stay in place keep the keyboard.

const KINDS = {
  cross: { text: "French looks at English", side: "decoder", part: "cross_attention", heads: ["English", "to write"] },
  encoder: { text: "English at English", side: "encoder", part: "self_attention", heads: ["looked at", "each word"] },
  decoder: { text: "French at French", side: "decoder", part: "self_attention", heads: ["written so far", "to write"] },
};
const FOCUSES = { // which parts a page shows, and with which attention it opens
  all: { parts: ["ask", "attention", "next", "off", "search"], kind: "cross" },
  attention: { parts: ["ask", "attention"], kind: "encoder" },
  heads: { parts: ["ask", "attention", "off"], kind: "cross" },
  masks: { parts: ["ask", "attention", "off"], kind: "decoder" },
  search: { parts: ["ask", "next", "search"], kind: "cross" },
};
const PACE = 420; // milliseconds a word, when it is watched
const FIRST = 6; // words in the list of what could come next
const TRIES = 5; // sentences to choose from
const FINISHED = 4; // hypotheses in the list below the tree

// The head whose looks are sharpest and most spread over the words: the one worth seeing first.
function telling(layers) {
  const worth = layers.flatMap((heads, layer) => heads.map((rows, head) => {
    const sharp = rows.reduce((sum, row) => sum + Math.max(...row), 0) / rows.length;
    const places = new Set(rows.map((row) => row.indexOf(Math.max(...row)))).size / rows.length;
    return { layer, head, worth: sharp * places };
  }));
  return worth.reduce((a, b) => (b.worth > a.worth ? b : a));
}

class View {
  constructor(root, model, content, focus) {
    Object.assign(this, { root, model, content, focus: FOCUSES[focus] });
    this.state = { sentence: content.examples[0], shown: Infinity, kind: this.focus.kind, layer: 0, head: 0, chosen: 0, asMap: false, size: 4 };
    this.off = { causal: false, positions: false, heads: new Set(), norm: "" };
    this.build();
    this.translate();
    const opening = content.openings.find((one) => one.sentence === this.state.sentence && one.kind === this.focus.kind);
    Object.assign(this.state, opening ?? telling(this.maps()));
    this.state.chosen = opening?.chosen ?? this.crossing();
    this.show();
  }

  has(part) {
    return this.focus.parts.includes(part);
  }

  // --- what is on the page --------------------------------------------------------------------

  build() {
    const places = ["french", "stamps", "picture", "list", "searched", "offHeads"];
    for (const place of places) this[place] = make("div", { class: `tr-${place}` });
    this.line = make("p", { class: "tr-line", "aria-live": "polite" });
    const part = (name, ...children) => (this.has(name) ? [make("div", { class: `tr-part tr-${name}` }, children)] : []);
    const titled = (name, title, ...children) => part(name, make("div", { role: "group", "aria-label": title }, [make("p", { class: "tr-title" }, [title]), ...children]));
    this.root.replaceChildren(make("div", { class: "tr" }, [
      make("style", {}, [STYLE]),
      ...part("ask", this.asking(), this.french, this.moving(), this.line),
      ...part("attention", this.choosing(), make("div", { class: "tr-looks" }, [this.picture, make("div", {}, [this.stamps, ...this.coming()])])),
      ...titled("off", "Switch something off", this.switching()),
      ...titled("search", "Beam search", this.searching(), this.searched, ...(this.has("attention") ? [] : this.coming())),
      make("details", { class: "tr-words" }, [make("summary", {}, ["The English words it knows"]), make("p", {}, [this.known()])]),
    ]));
  }

  coming() {
    this.nextHead = make("p", { class: "tr-head" });
    return this.has("next") ? [this.nextHead, this.list] : [];
  }

  known() {
    return this.model.source.words.filter((word) => !word.startsWith("<")).sort((a, b) => a.localeCompare(b)).join(" ");
  }

  asking() {
    this.input = make("input", { type: "text", autocomplete: "off", spellcheck: "false", enterkeyhint: "go" });
    const form = make("form", { class: "tr-form" }, [labelled("English", this.input), make("button", { type: "submit", class: "tr-main" }, ["Translate"])]);
    form.addEventListener("submit", (event) => { event.preventDefault(); this.ask(this.input.value); });
    const tries = this.content.examples.slice(0, TRIES).map((sentence) => push(sentence, () => this.ask(sentence)));
    return make("div", {}, [form, make("div", { class: "tr-tries", role: "group", "aria-label": "Sentences to try" }, tries)]);
  }

  moving() {
    this.watch = push("Watch it write", () => this.play());
    this.fewer = push("One word back", () => this.move(-1));
    this.more = push("Next word", () => this.move(1));
    return make("div", { class: "tr-row" }, [this.watch, this.fewer, this.more]);
  }

  choosing() {
    const kinds = Object.fromEntries(Object.entries(KINDS).map(([kind, { text }]) => [kind, text]));
    this.kinds = select(kinds, (kind) => { Object.assign(this.state, { kind }); Object.assign(this.state, telling(this.maps())); this.show(); });
    this.views = select({ arcs: "as arcs", map: "as a map" }, (view) => { this.state.asMap = view === "map"; this.show(); });
    return make("div", { class: "tr-row" }, [labelled("Attention", this.kinds), labelled("shown", this.views)]);
  }

  switching() {
    const turn = (name) => check((on) => { this.off[name] = on; this.change(); });
    this.causal = turn("causal");
    this.positions = turn("positions");
    this.thisHead = check((on) => { this.off.heads[on ? "add" : "delete"](this.headName()); this.change(); });
    const norms = Object.keys(this.model.tensors).filter((name) => /norm\d?\.gain$/.test(name)).map((name) => name.replace(".gain", ""));
    const named = (name) => name.replace(".layers.", ", layer ").replace(/layer (\d+)\./, (_, n) => `layer ${Number(n) + 1}, `).replace(/norm(\d)/, "norm $1");
    this.norm = select({ "": "none", ...Object.fromEntries(norms.map((name) => [name, named(name)])) }, (name) => { this.off.norm = name; this.change(); });
    this.headLabel = make("span");
    const head = labelled("", this.thisHead, true);
    head.querySelector("label").append("the chosen head: ", this.headLabel);
    return make("div", { class: "tr-row tr-switches" }, [
      ...(this.has("attention") ? [head] : []),
      labelled("the causal mask", this.causal, true), labelled("the positions", this.positions, true), labelled("a norm:", this.norm),
      push("All on again", () => this.allOn()), this.offHeads,
    ]);
  }

  searching() {
    this.width = make("input", { type: "range", min: 1, max: 5, step: 1, value: this.state.size });
    this.widthShown = make("span");
    this.width.addEventListener("input", () => { this.state.size = Number(this.width.value); this.say(this.showSearch()); });
    const control = labelled("", this.width);
    control.querySelector("label").append("beam size = ", this.widthShown);
    return make("div", { class: "tr-row" }, [control]);
  }

  // --- what happens ---------------------------------------------------------------------------

  ask(sentence) {
    const tidied = tidy(sentence);
    if (!tidied) return this.say("Write an English sentence first.");
    const before = this.state.sentence;
    this.state.sentence = tidied;
    try {
      this.translate();
    } catch (error) {
      this.state.sentence = before;
      this.translate();
      return this.say(`Not translated: ${error.message}.`);
    }
    Object.assign(this.state, telling(this.maps()));
    return this.play();
  }

  allOn() {
    this.off = { causal: false, positions: false, heads: new Set(), norm: "" };
    this.change();
  }

  change() {
    this.stop();
    this.state.shown = Infinity;
    this.translate();
    this.show();
  }

  // Translate with all that is on, and once more with the whole model, to compare.
  translate() {
    const { model, off, state } = this;
    model.switches = WHOLE;
    this.whole = greedy(model, state.sentence);
    model.switches = { causal: !off.causal, positions: !off.positions, heads: off.heads, norms: new Set(off.norm ? [off.norm] : []) };
    this.found = this.isWhole() ? this.whole : greedy(model, state.sentence);
  }

  isWhole() {
    const { causal, positions, heads, norm } = this.off;
    return !causal && !positions && !norm && heads.size === 0;
  }

  move(by) {
    this.stop();
    const all = this.found.steps.length;
    this.state.shown = Math.max(1, Math.min(all, Math.min(this.state.shown, all) + by));
    this.state.chosen = this.state.shown - 1;
    this.show();
  }

  play() {
    this.stop();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      Object.assign(this.state, { shown: Infinity, chosen: this.crossing() });
      return this.show();
    }
    Object.assign(this.state, { shown: 1, chosen: 0 });
    this.playing = setInterval(() => {
      if (this.state.shown >= this.found.steps.length) return this.stop(true);
      this.state.shown += 1;
      this.state.chosen = this.state.shown - 1;
      return this.show();
    }, PACE);
    return this.show();
  }

  stop(drawn = false) {
    clearInterval(this.playing);
    this.playing = undefined;
    if (drawn) this.show();
  }

  choose(query, passing = false) {
    if (query === this.state.chosen) return;
    this.state.chosen = query;
    this.show(passing);
  }

  // --- what it says and draws -----------------------------------------------------------------

  maps(kind = this.state.kind) {
    if (kind === "encoder") return this.found.source.weights;
    const last = this.found.steps[Math.min(this.state.shown, this.found.steps.length) - 1].state;
    return kind === "cross" ? last.cross : last.self;
  }

  word(id) {
    return this.model.target.words[id];
  }

  english() {
    return this.found.source.ids.map((id) => this.model.source.words[id]);
  }

  written() {
    return this.found.steps.slice(0, this.state.shown);
  }

  // The word whose look crosses most of the others: where the order of the two languages differs.
  crossing() {
    if (this.state.kind !== "cross") return Math.min(3, this.found.steps.length - 1);
    const rows = this.maps()[this.state.layer][this.state.head].slice(0, -1);
    const far = rows.map((row, query) => {
      const key = row.indexOf(Math.max(...row));
      return key % (row.length - 1) ? Math.abs(key - 1 - query) : 0; // the ends are no words
    });
    return Math.max(0, far.indexOf(Math.max(...far)));
  }

  headName() {
    const { kind, layer, head } = this.state;
    return `${KINDS[kind].side}.layers.${layer}.${KINDS[kind].part}/${head}`;
  }

  pictured() {
    const { kind, layer, head, chosen } = this.state;
    const keys = kind === "decoder" ? [this.word(this.model.bos), ...this.written().slice(0, -1).map(({ id }) => this.word(id))] : this.english();
    const queries = kind === "encoder" ? this.english() : this.written().map(({ id }) => this.word(id));
    const weights = this.maps()[layer][head].map((row) => keys.map((_, key) => row[key] ?? 0));
    return { keys, queries, weights, chosen: Math.min(chosen, queries.length - 1), heads: KINDS[kind].heads };
  }

  show(passing = false) {
    const { state } = this;
    if (document.activeElement !== this.input) this.input.value = state.sentence;
    this.showFrench();
    if (this.has("attention")) this.showAttention();
    if (this.has("next")) this.showNext();
    if (this.has("off")) this.showSwitches();
    if (this.has("search") && !passing && !this.playing) this.showSearch();
    if (!passing && !this.playing) this.say(`${this.summary()} ${this.looked()}`.trim());
  }

  say(text) {
    this.line.textContent = text;
  }

  summary() {
    const { found, whole, model, state } = this;
    const strange = model.source.encode(state.sentence).flatMap((id, place) => (id === model.source.unknown ? [state.sentence.split(" ")[place]] : []));
    const unknown = strange.length ? ` The model has never seen ${strange.join(", ")}.` : "";
    if (state.shown < found.steps.length) return `${state.shown} of ${found.steps.length} words.${unknown}`;
    const said = model.text(found.ids);
    if (this.isWhole()) return `“${said}”${unknown}`;
    return said === model.text(whole.ids) ? "Nothing changes in this sentence: the others make up for what is off." : `The whole model writes “${model.text(whole.ids)}”${unknown}`;
  }

  // What the chosen word looks at, or what else could have come in its place.
  looked() {
    if (this.has("attention")) {
      const { keys, queries, weights, chosen } = this.pictured();
      const most = Math.max(...weights[chosen]);
      return `Layer ${this.state.layer + 1}, head ${this.state.head + 1}: “${queries[chosen]}” looks most at “${keys[weights[chosen].indexOf(most)]}”, with ${percent(most)}.`;
    }
    const { id, logProbs } = this.written()[Math.min(this.state.chosen, this.written().length - 1)];
    const [first, second] = likeliest(logProbs, 2).map((one) => `“${this.word(one)}” ${percent(Math.exp(logProbs[one]))}`);
    return `In the place of “${this.word(id)}”: ${first}, then ${second}.`;
  }

  showFrench() {
    const { found, whole, state } = this;
    const all = found.steps.length;
    const buttons = this.written().map(({ id, logProbs }, place) => {
      const changed = whole.steps[place]?.id !== id;
      const share = Math.exp(logProbs[id]);
      const button = push("", () => this.choose(place), { "aria-pressed": String(place === state.chosen && state.kind !== "encoder"), class: changed ? "tr-changed" : "" });
      button.append(make("span", { class: "tr-word" }, [this.word(id)]), make("span", { class: "tr-share" }, [percent(share)]));
      if (changed) button.append(make("span", { class: "tr-hidden" }, [", changed"]));
      button.style.setProperty("--share", share.toFixed(3));
      return button;
    });
    swap(this.french, make("div", { class: "tr-said", role: "group", "aria-label": "French, word by word, with probabilities" }, buttons));
    this.fewer.setAttribute("aria-disabled", String(state.shown <= 1));
    this.more.setAttribute("aria-disabled", String(state.shown >= all));
  }

  showAttention() {
    const given = this.pictured();
    const { state } = this;
    this.kinds.value = state.kind;
    const name = `Layer ${state.layer + 1}, head ${state.head + 1}: ${KINDS[state.kind].text}`;
    swap(this.picture, state.asMap ? map({ ...given, name }) : arcs({ ...given, choose: (query, passing) => this.choose(query, passing) }));
    const columns = given.keys.length;
    const rows = this.maps().map((heads, layer) => make("div", { class: "tr-layer" }, [
      make("span", {}, [`layer ${layer + 1}`]),
      ...heads.map((weights, head) => {
        const off = this.off.heads.has(`${KINDS[state.kind].side}.layers.${layer}.${KINDS[state.kind].part}/${head}`);
        const label = `layer ${layer + 1}, head ${head + 1}${off ? ", off" : ""}`;
        const button = push("", () => { Object.assign(state, { layer, head }); this.show(); }, { "aria-label": label, "aria-pressed": String(layer === state.layer && head === state.head), class: off ? "tr-isOff" : "" });
        button.append(stamp(weights, columns), make("span", { "aria-hidden": "true" }, [String(head + 1)]));
        return button;
      }),
    ]));
    swap(this.stamps, make("div", { role: "group", "aria-label": "Heads" }, [make("p", { class: "tr-head" }, ["every layer and head"]), ...rows]));
  }

  showNext() {
    const step = this.written()[Math.min(this.state.chosen, this.written().length - 1)];
    const words = likeliest(step.logProbs, FIRST).map((id) => ({ word: this.word(id), share: Math.exp(step.logProbs[id]), taken: id === step.id }));
    this.nextHead.textContent = `what could come in the place of “${this.word(step.id)}”`;
    swap(this.list, bars(words));
  }

  showSwitches() {
    const { off, state } = this;
    this.causal.checked = off.causal;
    this.positions.checked = off.positions;
    this.norm.value = off.norm;
    this.thisHead.checked = off.heads.has(this.headName());
    this.headLabel.textContent = `${KINDS[state.kind].text}, layer ${state.layer + 1}, head ${state.head + 1}`;
    this.offHeads.textContent = off.heads.size > 1 ? `${off.heads.size} heads are off.` : "";
  }

  showSearch() {
    const { model, state } = this;
    this.widthShown.textContent = String(state.size);
    const found = beam(model, state.sentence, state.size);
    const scroll = make("div", { class: "tr-scroll", tabindex: "0", role: "region", "aria-label": "Tree of the search" }, [tree({ ...found, word: (id) => this.word(id) })]);
    const list = make("ol", { class: "tr-finished" }, found.finished.slice(0, FINISHED).map((node) => make("li", {}, [
      make("span", { class: "tr-word" }, [model.text(found.path(node).filter((id) => id !== model.eos))]), ` score ${node.score.toFixed(3).replace("-", "−")}`,
    ])));
    swap(this.searched, make("div", {}, [scroll, list]));
    const [best] = found.finished;
    return best ? `Beam size ${state.size}: best is “${model.text(found.path(best).filter((id) => id !== model.eos))}”.` : `Beam size ${state.size}: nothing is finished.`;
  }
}
