// Chapter 1: a word is an id, the id a row of the table; rows that training made alike.

const NEAREST = 7; // rows in the list
const TO_TRY = ["queen", "eats", "three", "dogs", "her", "red"];

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

const rowOf = (model, id) => model.tensors["source_embedding.weight"].subarray(id * model.sizes.d_model, (id + 1) * model.sizes.d_model);

// The words whose rows point most in the direction of this id's, special tokens left out: {id, share}.
function nearest(model, id, count = NEAREST) {
  return range(model.source.words.length)
    .filter((other) => other !== id && !model.source.words[other].startsWith("<"))
    .map((other) => ({ id: other, share: cosine(rowOf(model, id), rowOf(model, other)) }))
    .sort((a, b) => b.share - a.share).slice(0, count);
}

class WordLens extends Lens {
  read(text) {
    this.word = text.trim().toLowerCase();
  }

  start() {}

  parts() {
    const tries = TO_TRY.map((word) => push(word, () => this.look(word)));
    return [
      this.asking("A word", this.word, (text) => this.look(text), "Look it up"),
      make("div", { class: "tr-tries", role: "group", "aria-label": "Words to try" }, tries),
      this.picture, this.line,
    ];
  }

  look(text) {
    if (!text.trim()) return this.say("Write an English word first.");
    this.read(text.trim().split(/\s+/)[0]);
    this.input.value = this.word;
    return this.show();
  }

  show() {
    const { model } = this;
    const words = model.source.words;
    const [id] = model.source.encode(this.word);
    const near = nearest(model, id);
    const most = Math.max(...[id, ...near.map((one) => one.id)].map((one) => largest(rowOf(model, one))));
    const row = (other, share) => make("li", share === undefined ? { class: "tr-taken" } : {}, [
      share === undefined ? make("span", { class: "tr-word" }, [words[other]]) : push(words[other], () => this.look(words[other])),
      make("span", { class: "tr-share" }, [`id ${other}`]),
      strip(rowOf(model, other), most, `row ${other} of the table`),
      make("span", { class: "tr-share" }, [share === undefined ? "cosine" : decimal(share)]),
    ]);
    swap(this.picture, make("ol", { class: "tr-rows" }, [row(id), ...near.map((one) => row(one.id, one.share))]));
    const unknown = id === model.source.unknown ? `“${this.word}” is not in the vocabulary, so it becomes ${words[id]}. ` : "";
    this.say(`${unknown}Row ${id} of ${words.length} is “${words[id]}”. Nearest to it: ${near.slice(0, 3).map((one) => words[one.id]).join(", ")}.`);
  }
}
