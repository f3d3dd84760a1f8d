// What a page calls: the weights' file hands the numbers over, a page's button opens a part.

const LENSES = {
  word: WordLens,
  order: OrderLens,
  layer: LayerLens,
  stack: StackLens,
  forced: ForcedLens,
};

let loaded;
globalThis.courseTranslatorLoaded = (content) => { loaded = content; };
globalThis.courseTranslator = {
  Model, greedy, carryOn, beam, nearest, tidy, WHOLE,
  content: () => loaded,
  open: (root, { focus = "all", sentence, word } = {}) => {
    const model = new Model(loaded);
    if (LENSES[focus]) return new LENSES[focus](root, model, sentence, word);
    const examples = sentence ? [...new Set([sentence, ...loaded.examples])] : loaded.examples;
    return new View(root, model, { ...loaded, examples }, focus);
  },
};
