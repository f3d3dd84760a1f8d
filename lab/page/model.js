// The course's Transformer in plain arithmetic: a model's numbers, its tokeniser, one token at a
// time with kept keys and values. Names are those of the Python module.

const FORMAT = 1;

// What a switch turns off. Heads and norms are named as in the weights, a head with its number:
// "encoder.layers.0.self_attention/2", "decoder.layers.1.norm3".
const WHOLE = { causal: true, positions: true, padding: true, heads: new Set(), norms: new Set() };

// The numbers of a file that `python -m lab page` wrote.
function unpack(content) {
  if (content.format !== FORMAT) throw new Error(`a model of format ${content.format}; this page reads ${FORMAT}`);
  const data = Uint8Array.from(atob(content.data), (letter) => letter.charCodeAt(0));
  const isWhole = ([name, shape]) => shape.length === 2 && name !== "positions";
  const size = ([, shape]) => shape.reduce((product, n) => product * n, 1);
  const ofMatrices = content.tensors.filter(isWhole).reduce((sum, one) => sum + size(one), 0);
  const floats = new Float32Array(data.buffer, 0, (data.length - ofMatrices) / 4);
  const whole = new Int8Array(data.buffer, data.length - ofMatrices);
  const tensors = {};
  let [atFloat, atWhole] = [0, 0];
  for (const entry of content.tensors) {
    const [name, shape] = entry;
    if (!isWhole(entry)) {
      tensors[name] = floats.slice(atFloat, (atFloat += size(entry)));
      continue;
    }
    const [rows, columns] = shape;
    const matrix = new Float32Array(rows * columns);
    for (let row = 0; row < rows; row += 1) {
      const factor = floats[atFloat + row];
      for (let column = 0; column < columns; column += 1) {
        const at = row * columns + column;
        matrix[at] = whole[atWhole + at] * factor;
      }
    }
    atFloat += rows;
    atWhole += rows * columns;
    tensors[name] = matrix;
  }
  for (const [name, same] of Object.entries(content.aliases)) tensors[name] = tensors[same];
  return tensors;
}

// Words and ids of one language, as lab.text does it: split at white space, special tokens anywhere.
class Words {
  constructor(words, unknown) {
    this.words = words;
    this.unknown = unknown;
    this.ids = new Map(words.map((word, id) => [word, id]));
  }

  encode(sentence) {
    return sentence
      .split(/(<pad>|<bos>|<eos>)/)
      .flatMap((part) => part.split(/[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/))
      .filter((word) => word)
      .map((word) => this.ids.get(word) ?? this.unknown);
  }
}

// A sentence as people type it, in the form of the grammar: lower case, signs on their own.
function tidy(sentence) {
  const text = sentence.trim().toLowerCase().replace(/[’`]/g, "'").replace(/\bcan't\b/g, "cannot")
    .replace(/n't\b/g, " not").replace(/\s*('s)(?=\s|$)/g, " $1").replace(/\s*([.?!])\s*$/, " $1").replace(/!$/, ".");
  if (!text) return "";
  const asks = /^(do|does|is|are|am|can)\s/.test(text);
  return (/[.?]$/.test(text) ? text : `${text} ${asks ? "?" : "."}`).replace(/\s+/g, " ");
}

// matrix (rows, columns) times x, plus a bias if there is one
function linear(x, matrix, bias) {
  const columns = x.length;
  const rows = matrix.length / columns;
  const out = new Float32Array(rows);
  for (let row = 0, at = 0; row < rows; row += 1) {
    let sum = bias ? bias[row] : 0;
    for (let column = 0; column < columns; column += 1, at += 1) sum += matrix[at] * x[column];
    out[row] = sum;
  }
  return out;
}

function softmax(scores) {
  const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = scores.map((score) => Math.exp(score - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

function logSoftmax(logits) {
  const most = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const log = most + Math.log(logits.reduce((sum, one) => sum + Math.exp(one - most), 0));
  return Float64Array.from(logits, (one) => one - log);
}

const plus = (a, b) => a.map((value, i) => value + b[i]);
const range = (n) => [...Array(n).keys()];

class Model {
  constructor(content) {
    this.sizes = content.sizes;
    this.tensors = unpack(content);
    const { unk, bos, eos, source_bos, source_eos } = content.specials;
    Object.assign(this, { bos, eos });
    this.ends = [source_bos, source_eos];
    this.source = new Words(content.source, unk);
    this.target = new Words(content.target, unk);
    this.longest = this.tensors.positions.length / this.sizes.d_model; // ids, the ends included
    this.switches = WHOLE;
  }

  // Ids of a sentence, from <bos> to <eos>.
  ids(sentence) {
    return [this.ends[0], ...this.source.encode(sentence), this.ends[1]];
  }

  text(ids) {
    return ids.map((id) => this.target.words[id]).join(" ");
  }

  // Read the source: memory, the weights of every layer and head, [layer][head][query][key], and
  // what stands before and after each sub-layer, [2 * layer + sub-layer]. One place can be hidden.
  encode(ids, hidden = -1) {
    if (ids.length > this.longest) throw new Error(`at most ${this.longest - 2} words: the model has seen no longer sentence`);
    const seen = ids.map((id, place) => place !== hidden && (id !== this.sizes.pad_id || !this.switches.padding));
    let rows = ids.map((id, place) => this.placed("source_embedding.weight", id, place));
    const [weights, stages] = [[], []];
    for (const layer of this.layers("encoder")) {
      const maps = this.noMaps();
      const look = (given) => {
        const kept = this.project(`${layer}.self_attention`, given);
        return given.map((x) => this.attend(`${layer}.self_attention`, x, kept, seen, maps));
      };
      stages.push(this.around(`${layer}.norm1`, rows, look));
      stages.push(this.around(`${layer}.norm2`, stages.at(-1).out, (given) => given.map((x) => this.network(layer, x))));
      rows = stages.at(-1).out;
      weights.push(maps);
    }
    const memory = rows.map((x) => this.last("encoder", x));
    return { ids, seen, memory, weights, stages, keys: this.layers("decoder").map((layer) => this.project(`${layer}.cross_attention`, memory)) };
  }

  // The state before the first word: nothing is written, nothing is kept.
  begin(source) {
    return { source, ids: [], kept: this.layers("decoder").map(() => ({ keys: [], values: [] })), self: this.layers("decoder").map(() => this.noMaps()), cross: this.layers("decoder").map(() => this.noMaps()) };
  }

  // Write one more id: a new state, with the logits for the next one. With the causal mask what was
  // computed for earlier ids stays as it is; without it all of it has to be computed again.
  step(state, id) {
    const ids = [...state.ids, id];
    if (ids.length > this.longest) throw new Error("the table of positions has no further row");
    return this.switches.causal ? this.extend(state, ids) : this.again(state.source, ids);
  }

  extend(state, ids) {
    const { source } = state;
    const place = ids.length - 1;
    const seen = ids.map((one) => one !== this.sizes.pad_id);
    const next = { source, ids, kept: [], self: [], cross: [] };
    let x = this.placed("target_embedding.weight", ids[place], place);
    this.layers("decoder").forEach((layer, number) => {
      const [self, cross] = [state.self, state.cross].map((maps) => maps[number].map((rows) => [...rows]));
      const asked = this.before(`${layer}.norm1`, x);
      const own = this.project(`${layer}.self_attention`, [asked]);
      const kept = { keys: [...state.kept[number].keys, ...own.keys], values: [...state.kept[number].values, ...own.values] };
      x = this.after(`${layer}.norm1`, plus(x, this.attend(`${layer}.self_attention`, asked, kept, seen, self)));
      x = this.cross(layer, x, source, number, cross);
      x = this.feed(layer, "norm3", x);
      next.kept.push(kept);
      next.self.push(self);
      next.cross.push(cross);
    });
    return { ...next, logits: this.logits(x) };
  }

  // All ids at once, each of which sees the later ones too.
  again(source, ids) {
    const seen = ids.map((one) => one !== this.sizes.pad_id);
    const next = this.begin(source);
    let rows = ids.map((id, place) => this.placed("target_embedding.weight", id, place));
    this.layers("decoder").forEach((layer, number) => {
      const asked = rows.map((x) => this.before(`${layer}.norm1`, x));
      const kept = this.project(`${layer}.self_attention`, asked);
      rows = rows.map((x, i) => this.after(`${layer}.norm1`, plus(x, this.attend(`${layer}.self_attention`, asked[i], kept, seen, next.self[number]))));
      rows = rows.map((x) => this.cross(layer, x, source, number, next.cross[number]));
      rows = rows.map((x) => this.feed(layer, "norm3", x));
    });
    return { ...next, ids, logits: this.logits(rows.at(-1)) };
  }

  // --- parts ---------------------------------------------------------------------------------

  layers(side) {
    return range(this.sizes.num_layers).map((number) => `${side}.layers.${number}`);
  }

  noMaps() {
    return range(this.sizes.num_heads).map(() => []);
  }

  placed(table, id, place) {
    const width = this.sizes.d_model;
    const row = this.tensors[table].subarray(id * width, (id + 1) * width);
    const position = this.tensors.positions.subarray(place * width, (place + 1) * width);
    const scale = Math.sqrt(width);
    return row.map((value, i) => Math.fround(value * scale) + (this.switches.positions ? position[i] : 0));
  }

  // A sub-layer of all rows with its residual connection and its norm, and what stood on the way.
  around(norm, rows, part) {
    const made = part(rows.map((x) => this.before(norm, x)));
    const sum = rows.map((x, i) => plus(x, made[i]));
    return { rows, made, sum, out: sum.map((x) => this.after(norm, x)) };
  }

  before(norm, x) {
    return this.sizes.norm_first ? this.normed(norm, x) : x;
  }

  after(norm, x) {
    return this.sizes.norm_first ? x : this.normed(norm, x);
  }

  last(side, x) {
    return this.sizes.norm_first ? this.normed(`${side}.norm`, x) : x;
  }

  normed(name, x) {
    if (this.switches.norms.has(name)) return x;
    const mean = x.reduce((a, b) => a + b, 0) / x.length;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
    const spread = Math.sqrt(variance + this.sizes.eps);
    const [gain, bias] = [this.tensors[`${name}.gain`], this.tensors[`${name}.bias`]];
    return x.map((value, i) => gain[i] * (value - mean) / spread + bias[i]);
  }

  project(attention, rows) {
    const [keys, values] = ["w_k", "w_v"].map((part) => rows.map((x) => linear(x, this.tensors[`${attention}.${part}.weight`])));
    return { keys, values };
  }

  // One query looks at all keys that may be seen; each head's weights go to the end of its map.
  attend(attention, x, { keys, values }, seen, maps) {
    const { d_model, num_heads } = this.sizes;
    const width = d_model / num_heads;
    const query = linear(x, this.tensors[`${attention}.w_q.weight`]);
    const merged = new Float32Array(d_model);
    for (let head = 0; head < num_heads; head += 1) {
      const start = head * width;
      const scores = keys.map((key, place) => {
        if (!seen[place]) return -Infinity;
        let sum = 0;
        for (let i = start; i < start + width; i += 1) sum += query[i] * key[i];
        return sum / Math.sqrt(width);
      });
      const weights = seen.slice(0, keys.length).some(Boolean) ? softmax(scores) : scores.map(() => 0);
      maps[head].push(weights);
      if (this.switches.heads.has(`${attention}/${head}`)) continue;
      values.forEach((value, place) => {
        for (let i = start; i < start + width; i += 1) merged[i] += weights[place] * value[i];
      });
    }
    return linear(merged, this.tensors[`${attention}.w_o.weight`]);
  }

  cross(layer, x, source, number, maps) {
    const asked = this.before(`${layer}.norm2`, x);
    return this.after(`${layer}.norm2`, plus(x, this.attend(`${layer}.cross_attention`, asked, source.keys[number], source.seen, maps)));
  }

  feed(layer, norm, x) {
    const made = this.network(layer, this.before(`${layer}.${norm}`, x));
    return this.after(`${layer}.${norm}`, plus(x, made));
  }

  network(layer, x) {
    const [inner, outer] = ["inner", "outer"].map((part) => `${layer}.feed_forward.${part}`);
    const hidden = linear(x, this.tensors[`${inner}.weight`], this.tensors[`${inner}.bias`]).map((value) => Math.max(value, 0));
    return linear(hidden, this.tensors[`${outer}.weight`], this.tensors[`${outer}.bias`]);
  }

  logits(x) {
    return linear(this.last("decoder", x), this.tensors["generator.weight"]);
  }
}
