"""English sentences with their French translations, made by a small grammar.

Every pair is correct by construction, and one English sentence has exactly one French sentence:
"you" is always "vous", "they" is always "ils". Words are lower case and separated by spaces;
"l'", "n'" and "qu'" are words of their own, and so are "'s" and the full stop.

The module reads in three steps: tables of words; functions that build a phrase or a sentence
from chosen words (`noun_phrase`, `clause`); functions that choose at random (`_draw_...`).
French grows in a plain form first ("de le ami ne a pas de eau"); `elide` then joins what French
joins ("de l' ami n' a pas d' eau").
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

# --- Words --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noun:
    """A noun; `kinds` says where it makes sense. A noun of kind "mass" has no plural."""

    english: str
    english_plural: str
    french: str
    french_plural: str
    feminine: bool
    kinds: frozenset[str]


@dataclass(frozen=True)
class Adjective:
    """An adjective with its French forms; `before` says that it precedes the noun in French."""

    english: str
    masculine: str
    masculine_plural: str
    feminine: str
    feminine_plural: str
    kinds: frozenset[str]
    before: bool = False
    before_vowel: str = ""  # masculine singular in front of a vowel, where it differs


@dataclass(frozen=True)
class Verb:
    """A verb; `preposition` (English, French) ties it to its object, as in "go to", "aller à"."""

    english: str
    french: str
    kinds: frozenset[str]  # of the nouns that can be its object; empty if it takes none
    preposition: tuple[str, str] = ("", "")


ANYTHING = "person animal thing food place area"  # kinds of noun

# english, plural, french, plural, gender, kinds
NOUNS = [
    Noun(english, plural, french, pluriel, gender == "f", frozenset(kinds.split()))
    for english, plural, french, pluriel, gender, kinds in [
        ("man", "men", "homme", "hommes", "m", "person"),
        ("woman", "women", "femme", "femmes", "f", "person"),
        ("boy", "boys", "garçon", "garçons", "m", "person"),
        ("girl", "girls", "fille", "filles", "f", "person"),
        ("child", "children", "enfant", "enfants", "m", "person"),
        ("friend", "friends", "ami", "amis", "m", "person"),
        ("teacher", "teachers", "professeur", "professeurs", "m", "person"),
        ("doctor", "doctors", "médecin", "médecins", "m", "person"),
        ("hero", "heroes", "héros", "héros", "m", "person"),
        ("king", "kings", "roi", "rois", "m", "person"),
        ("queen", "queens", "reine", "reines", "f", "person"),
        ("actress", "actresses", "actrice", "actrices", "f", "person"),
        ("uncle", "uncles", "oncle", "oncles", "m", "person"),
        ("aunt", "aunts", "tante", "tantes", "f", "person"),
        ("brother", "brothers", "frère", "frères", "m", "person"),
        ("sister", "sisters", "sœur", "sœurs", "f", "person"),
        ("cat", "cats", "chat", "chats", "m", "animal"),
        ("dog", "dogs", "chien", "chiens", "m", "animal"),
        ("bird", "birds", "oiseau", "oiseaux", "m", "animal"),
        ("horse", "horses", "cheval", "chevaux", "m", "animal"),
        ("mouse", "mice", "souris", "souris", "f", "animal"),
        ("owl", "owls", "hibou", "hiboux", "m", "animal"),
        ("cow", "cows", "vache", "vaches", "f", "animal"),
        ("goose", "geese", "oie", "oies", "f", "animal"),
        ("tree", "trees", "arbre", "arbres", "m", "thing"),
        ("flower", "flowers", "fleur", "fleurs", "f", "thing"),
        ("car", "cars", "voiture", "voitures", "f", "thing"),
        ("boat", "boats", "bateau", "bateaux", "m", "thing"),
        ("hat", "hats", "chapeau", "chapeaux", "m", "thing"),
        ("knife", "knives", "couteau", "couteaux", "m", "thing"),
        ("umbrella", "umbrellas", "parapluie", "parapluies", "m", "thing"),
        ("clock", "clocks", "horloge", "horloges", "f", "thing"),
        ("table", "tables", "table", "tables", "f", "thing furniture"),
        ("chair", "chairs", "chaise", "chaises", "f", "thing furniture"),
        ("bed", "beds", "lit", "lits", "m", "thing furniture"),
        ("door", "doors", "porte", "portes", "f", "thing opening"),
        ("window", "windows", "fenêtre", "fenêtres", "f", "thing opening"),
        ("box", "boxes", "boîte", "boîtes", "f", "thing opening"),
        ("book", "books", "livre", "livres", "m", "thing text"),
        ("letter", "letters", "lettre", "lettres", "f", "thing text"),
        ("newspaper", "newspapers", "journal", "journaux", "m", "thing text"),
        ("apple", "apples", "pomme", "pommes", "f", "food"),
        ("orange", "oranges", "orange", "oranges", "f", "food"),
        ("egg", "eggs", "œuf", "œufs", "m", "food"),
        ("cake", "cakes", "gâteau", "gâteaux", "m", "food"),
        ("tomato", "tomatoes", "tomate", "tomates", "f", "food"),
        ("bread", "", "pain", "", "m", "mass dish"),
        ("soup", "", "soupe", "", "f", "mass dish"),
        ("cheese", "", "fromage", "", "m", "mass dish"),
        ("meat", "", "viande", "", "f", "mass dish"),
        ("water", "", "eau", "", "f", "mass drink"),
        ("tea", "", "thé", "", "m", "mass drink"),
        ("coffee", "", "café", "", "m", "mass drink"),
        ("milk", "", "lait", "", "m", "mass drink"),
        ("school", "schools", "école", "écoles", "f", "place"),
        ("hotel", "hotels", "hôtel", "hôtels", "m", "place"),
        ("hospital", "hospitals", "hôpital", "hôpitaux", "m", "place"),
        ("museum", "museums", "musée", "musées", "m", "place"),
        ("church", "churches", "église", "églises", "f", "place"),
        ("station", "stations", "gare", "gares", "f", "place"),
        ("airport", "airports", "aéroport", "aéroports", "m", "place"),
        ("shop", "shops", "magasin", "magasins", "m", "place"),
        ("restaurant", "restaurants", "restaurant", "restaurants", "m", "place"),
        ("library", "libraries", "bibliothèque", "bibliothèques", "f", "place"),
        ("house", "houses", "maison", "maisons", "f", "area"),
        ("garden", "gardens", "jardin", "jardins", "m", "area"),
        ("forest", "forests", "forêt", "forêts", "f", "area"),
        ("park", "parks", "parc", "parcs", "m", "area"),
    ]
]

# english, masculine, plural, feminine, plural, kinds of the nouns it suits
ADJECTIVES_AFTER = [
    Adjective(english, m, ms, f, fs, frozenset(kinds.split()))
    for english, m, ms, f, fs, kinds in [
        ("red", "rouge", "rouges", "rouge", "rouges", "thing food"),
        ("green", "vert", "verts", "verte", "vertes", "thing food"),
        ("blue", "bleu", "bleus", "bleue", "bleues", "thing"),
        ("black", "noir", "noirs", "noire", "noires", "thing animal"),
        ("white", "blanc", "blancs", "blanche", "blanches", "thing animal"),
        ("grey", "gris", "gris", "grise", "grises", "thing animal"),
        ("expensive", "cher", "chers", "chère", "chères", "thing place dish drink"),
        ("happy", "heureux", "heureux", "heureuse", "heureuses", "person animal"),
        ("tired", "fatigué", "fatigués", "fatiguée", "fatiguées", "person animal"),
        ("honest", "honnête", "honnêtes", "honnête", "honnêtes", "person"),
        ("rich", "riche", "riches", "riche", "riches", "person"),
        ("clever", "intelligent", "intelligents", "intelligente", "intelligentes", "person animal"),
        ("strange", "étrange", "étranges", "étrange", "étranges", "person animal thing place area"),
        ("quiet", "calme", "calmes", "calme", "calmes", "person place area"),
        ("hot", "chaud", "chauds", "chaude", "chaudes", "dish drink"),
        ("cold", "froid", "froids", "froide", "froides", "dish drink"),
    ]
]

# as above, and the masculine in front of a vowel
ADJECTIVES_BEFORE = [
    Adjective(english, m, ms, f, fs, frozenset(kinds.split()), True, before_vowel)
    for english, m, ms, f, fs, kinds, before_vowel in [
        ("small", "petit", "petits", "petite", "petites", ANYTHING, ""),
        ("big", "grand", "grands", "grande", "grandes", "animal thing place area", ""),
        ("young", "jeune", "jeunes", "jeune", "jeunes", "person animal", ""),
        ("old", "vieux", "vieux", "vieille", "vieilles", "person animal thing place area", "vieil"),
        ("beautiful", "beau", "beaux", "belle", "belles", "animal thing place area", "bel"),
        ("new", "nouveau", "nouveaux", "nouvelle", "nouvelles", "person thing place", "nouvel"),
        ("pretty", "joli", "jolis", "jolie", "jolies", "animal thing place area", ""),
        ("good", "bon", "bons", "bonne", "bonnes", "person food dish drink", ""),
        ("bad", "mauvais", "mauvais", "mauvaise", "mauvaises", "food dish drink", ""),
    ]
]

ADJECTIVES = ADJECTIVES_BEFORE + ADJECTIVES_AFTER

# Who does it, and the forms of the irregular verbs in this order. All other verbs end in -er.
JE, VOUS, IL, NOUS, ILS = range(5)
IRREGULAR = {
    "être": "suis êtes est sommes sont",
    "avoir": "ai avez a avons ont",
    "aller": "vais allez va allons vont",
    "venir": "viens venez vient venons viennent",
    "vouloir": "veux voulez veut voulons veulent",
    "pouvoir": "peux pouvez peut pouvons peuvent",
    "voir": "vois voyez voit voyons voient",
    "boire": "bois buvez boit buvons boivent",
    "lire": "lis lisez lit lisons lisent",
    "écrire": "écris écrivez écrit écrivons écrivent",
    "dormir": "dors dormez dort dormons dorment",
    "ouvrir": "ouvre ouvrez ouvre ouvrons ouvrent",
    "vendre": "vends vendez vend vendons vendent",
    "prendre": "prends prenez prend prenons prennent",
    "acheter": "achète achetez achète achetons achètent",
}

VERBS = [
    Verb(english, french, frozenset(kinds.split()))
    for english, french, kinds in [
        ("see", "voir", ANYTHING),
        ("look at", "regarder", ANYTHING),
        ("look for", "chercher", ANYTHING),
        ("find", "trouver", ANYTHING),
        ("draw", "dessiner", ANYTHING),
        ("love", "aimer", ANYTHING),
        ("help", "aider", "person"),
        ("listen to", "écouter", "person"),
        ("visit", "visiter", "place area"),
        ("have", "avoir", "animal thing food dish drink"),
        ("buy", "acheter", "thing food dish drink"),
        ("sell", "vendre", "thing food dish drink"),
        ("bring", "apporter", "thing food dish drink"),
        ("take", "prendre", "thing food"),
        ("carry", "porter", "thing"),
        ("eat", "manger", "food dish"),
        ("prepare", "préparer", "dish"),
        ("drink", "boire", "drink"),
        ("read", "lire", "text"),
        ("write", "écrire", "text"),
        ("open", "ouvrir", "opening"),
        ("close", "fermer", "opening"),
    ]
]
VERBS_ALONE = [
    Verb(english, french, frozenset())
    for english, french in [
        ("sleep", "dormir"),
        ("work", "travailler"),
        ("sing", "chanter"),
        ("dance", "danser"),
        ("walk", "marcher"),
        ("play", "jouer"),
    ]
]
VERBS_WITH_PREPOSITION = [
    Verb(english, french, frozenset(kinds.split()), (english_link, french_link))
    for english, english_link, french, french_link, kinds in [
        ("go", "to", "aller", "à", "place"),
        ("come", "from", "venir", "de", "place"),
        ("live", "in", "habiter", "dans", "area"),
        ("live", "near", "habiter", "près de", "place area"),
        ("speak", "to", "parler", "à", "person"),
        ("think", "of", "penser", "à", "person animal thing"),
        ("dream", "of", "rêver", "de", "thing animal"),
        ("play", "with", "jouer", "avec", "person animal"),
        ("work", "for", "travailler", "pour", "person"),
    ]
]
ANIMALS_TOO = {  # verbs that an animal can be the subject of, in this grammar
    *["see", "look at", "look for", "find", "love", "help", "carry", "bring", "take", "eat"],
    *["drink", "go", "come", "live", "think", "dream", "play", "sleep", "sing", "dance", "walk"],
}
BE = Verb("be", "être", frozenset())
GIVE = Verb("give", "donner", frozenset({"thing", "food"}))
WANT = Verb("want to", "vouloir", frozenset())
CAN = Verb("can", "pouvoir", frozenset())

# english: masculine, feminine, plural
POSSESSIVES = {
    "my": ("mon", "ma", "mes"),
    "your": ("votre", "votre", "vos"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
DETERMINERS = POSSESSIVES | {
    "the": ("le", "la", "les"),
    "this": ("ce", "cette", "ces"),
    "these": ("", "", "ces"),
    "a": ("un", "une", ""),
    "some": ("de le", "de la", "des"),  # singular with mass nouns: du pain, de l' eau
    "": ("", "", ""),  # in front of a number
}
NUMBERS = {
    "two": "deux",
    "three": "trois",
    "four": "quatre",
    "five": "cinq",
    "six": "six",
    "seven": "sept",
    "eight": "huit",
    "nine": "neuf",
    "ten": "dix",
}
PLACES = {  # english preposition: french, kinds of noun
    "in": ("dans", "place area"),
    "at": ("à", "place"),
    "near": ("près de", "place area"),
    "behind": ("derrière", "place area"),
    "in front of": ("devant", "place area"),
    "on": ("sur", "furniture"),
    "under": ("sous", "furniture"),
    "with": ("avec", "person animal"),
}
TIMES = {"today": "aujourd'hui", "now": "maintenant", "every day": "tous les jours"}
CONJUNCTIONS = {"and": "et", "but": "mais", "because": "parce que"}

# Words that do not go together here, since the French means something else: "petit ami" is a
# boyfriend, "vieille fille" a spinster, "bonne sœur" a nun, "ma femme" my wife. "my" stands for
# all possessives.
AVOIDED = {
    *[("small", "friend"), ("old", "girl"), ("old", "boy"), ("old", "child")],
    *[("good", "sister"), ("good", "woman"), ("good", "man")],
    *[("my", "man"), ("my", "woman"), ("my", "boy"), ("my", "girl")],
}

VOWELS = "aeiouyàâéèêëîïôùûœ"
ASPIRATED = {"hibou", "hiboux", "héros", "huit"}  # an h that counts as a consonant
ELIDED = {  # in front of a vowel
    "le": "l'",
    "la": "l'",
    "je": "j'",
    "me": "m'",
    "ne": "n'",
    "de": "d'",
    "que": "qu'",
    "ce": "cet",
    "ma": "mon",
    "sa": "son",
}
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}

# --- What the rest of the course uses -----------------------------------------------------------


def sentence_pairs(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """Return n pairs (English, French), no English sentence twice.

    The same seed gives the same pairs, and the first pairs are the same whatever n is.

    Raises:
        ValueError: if n is negative, or there are fewer than n different sentences.
    """
    if n < 0:
        raise ValueError(f"n ({n}) must be at least 0")
    rng = random.Random(seed)
    pairs: dict[str, str] = {}
    repeated = 0
    while len(pairs) < n:
        english, french = _draw_sentence(rng)
        repeated = repeated + 1 if english in pairs else 0
        if repeated == 1000:
            raise ValueError(
                f"{n} sentences asked for, but 1000 draws in a row gave nothing new "
                f"after {len(pairs)}; ask for fewer"
            )
        pairs[english] = french
    return list(pairs.items())


def split_pairs(
    pairs: Sequence[tuple[str, str]], held_out: float = 0.1, seed: int = 0
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Split pairs in two that share no sentence, neither English nor French.

    Pairs that share a sentence ("he sees his cat" and "he sees her cat" are the same in French)
    go to the same side, so the share of held-out pairs is met up to the size of such a group.

    Args:
        pairs: (English, French).
        held_out: the share of pairs to hold out, above 0 and below 1.
        seed: which pairs are held out.

    Returns:
        The pairs to train on and the held-out pairs, both in random order.

    Raises:
        ValueError: if `held_out` is not between 0 and 1, or leaves a side empty.
    """
    if not 0 < held_out < 1:
        raise ValueError(f"held_out ({held_out}) must be above 0 and below 1")
    groups = _groups(pairs)
    random.Random(seed).shuffle(groups)
    wanted = round(held_out * len(pairs))
    train: list[tuple[str, str]] = []
    held: list[tuple[str, str]] = []
    for group in groups:
        side = held if len(held) + len(group) <= wanted else train
        side.extend(group)
    if not train or not held:
        raise ValueError(
            f"{len(pairs)} pairs in {len(groups)} groups with no sentence in common "
            f"are too few to hold out a share of {held_out}"
        )
    return train, held


def _groups(pairs: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Group the pairs that are linked by common sentences."""
    parent = list(range(len(pairs)))  # of each pair; the pair on top of a tree names its group

    def top(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    first_with: dict[tuple[str, str], int] = {}
    for index, (english, french) in enumerate(pairs):
        for sentence in [("english", english), ("french", french)]:
            parent[top(index)] = top(first_with.setdefault(sentence, index))
    groups: dict[int, list[tuple[str, str]]] = {}
    for index, pair in enumerate(pairs):
        groups.setdefault(top(index), []).append(pair)
    return list(groups.values())


# --- Grammar: from chosen words to phrases and sentences ----------------------------------------


@dataclass(frozen=True)
class Phrase:
    """A noun phrase or pronoun in both languages, with what other words must agree with."""

    english: str
    french: str  # in the plain form, before `elide`
    person: int = IL
    feminine: bool = False
    pronoun: bool = False  # French puts it before the verb when it is an object

    @property
    def plural(self) -> bool:
        """Whether the phrase stands for more than one."""
        return self.person in (NOUS, ILS)


SUBJECTS = [
    Phrase("i", "je", JE),
    Phrase("you", "vous", VOUS),
    Phrase("he", "il", IL),
    Phrase("she", "elle", IL, feminine=True),
    Phrase("we", "nous", NOUS),
    Phrase("they", "ils", ILS),
]
OBJECTS = [
    Phrase("me", "me", JE, pronoun=True),
    Phrase("you", "vous", VOUS, pronoun=True),
    Phrase("him", "le", IL, pronoun=True),
    Phrase("her", "la", IL, feminine=True, pronoun=True),
    Phrase("us", "nous", NOUS, pronoun=True),
    Phrase("them", "les", ILS, pronoun=True),
]


def noun_phrase(
    determiner: str,
    noun: Noun,
    adjectives: Sequence[Adjective] = (),
    *,
    plural: bool = False,
    number: str = "",
    owner: Phrase | None = None,
    negated: bool = False,
) -> Phrase:
    """Build a noun phrase, such as "my two small red cats" or "the doctor 's house".

    Args:
        determiner: a key of DETERMINERS; replaced by the owner, where there is one.
        noun: its head.
        adjectives: in English order, at most one of them `before` the noun in French.
        plural: more than one.
        number: a key of NUMBERS, for a plural.
        owner: whose it is.
        negated: object of a negated verb, where French says "pas de" for un, une, des, du.
    """
    indefinite = determiner in ("a", "some") and owner is None
    masculine, feminine, several = DETERMINERS["the" if owner else determiner]
    article = several if plural else feminine if noun.feminine else masculine
    before = [adjective for adjective in adjectives if adjective.before]
    after = [adjective for adjective in adjectives if not adjective.before]
    # "de petits chats": des becomes de in front of an adjective.
    if indefinite and (negated or (plural and before)):
        article = "de"
    french_noun = noun.french_plural if plural else noun.french
    french = [article, NUMBERS.get(number, "")]
    french += [
        agree(adjective, noun.feminine, plural, next_word=french_noun) for adjective in before
    ]
    french += [french_noun]
    french += [agree(adjective, noun.feminine, plural) for adjective in after]
    if owner:
        french += ["de", owner.french]

    english = [number, *[adjective.english for adjective in adjectives]]
    english += [noun.english_plural if plural else noun.english]
    if owner:
        english = [owner.english, "'s", *english]
    else:
        english = [_english_determiner(determiner, english, negated), *english]
    return Phrase(_join(english), _join(french), ILS if plural else IL, noun.feminine)


def both(first: Phrase, second: Phrase) -> Phrase:
    """Two phrases joined by "and"; masculine as soon as one of them is."""
    english, french = f"{first.english} and {second.english}", f"{first.french} et {second.french}"
    return Phrase(english, french, ILS, first.feminine and second.feminine)


def clause(
    subject: Phrase,
    verb: Verb,
    what: Phrase | None = None,
    rest: Sequence[tuple[str, str]] = (),
    *,
    modal: Verb | None = None,
    form: str = "statement",
) -> tuple[str, str]:
    """Build a clause in both languages, without its full stop and before `elide`.

    Args:
        subject: who; the verb agrees with it.
        verb: in the present tense.
        what: the object, if the verb takes one.
        rest: further phrases (English, French), such as a place.
        modal: WANT or CAN, which puts the verb into the infinitive.
        form: "statement", "negation" or "question".
    """
    english_link, french_link = verb.preposition
    english_object = [english_link, what.english] if what else []
    french_object = [french_link, what.french] if what else []
    clitic = []
    if what and what.pronoun:  # je le vois
        clitic, french_object = french_object, []
    finite = conjugate((modal or verb).french, subject.person)
    negation = ("ne", "pas") if form == "negation" else ("", "")
    if modal:  # je ne veux pas le voir
        group = [negation[0], finite, negation[1], *clitic, verb.french]
    else:
        group = [negation[0], *clitic, finite, negation[1]]
    question = ["est-ce que"] if form == "question" else []
    english = [*_english_verb(subject, verb, modal, form), *english_object, *[en for en, _ in rest]]
    french = [*question, subject.french, *group, *french_object, *[fr for _, fr in rest]]
    return _join(english), _join(french)


def agree(adjective: Adjective, feminine: bool, plural: bool, next_word: str = "") -> str:
    """The French form of an adjective; `next_word` is the noun, if the adjective precedes it."""
    if feminine:
        return adjective.feminine_plural if plural else adjective.feminine
    if plural:
        return adjective.masculine_plural
    if adjective.before_vowel and next_word and begins_with_vowel(next_word):
        return adjective.before_vowel
    return adjective.masculine


def conjugate(infinitive: str, person: int) -> str:
    """The present tense of a French verb for one of JE, VOUS, IL, NOUS, ILS."""
    if infinitive in IRREGULAR:
        return IRREGULAR[infinitive].split()[person]
    stem = infinitive.removesuffix("er")
    if person == NOUS and stem.endswith("g"):  # nous mangeons
        stem += "e"
    return stem + ["e", "ez", "e", "ons", "ent"][person]


def elide(french: str) -> str:
    """Join what French joins: "de le ami" becomes "de l' ami", "à le roi" becomes "au roi"."""
    words = french.split()
    for index, following in enumerate(words[1:]):
        if begins_with_vowel(following):
            words[index] = ELIDED.get(words[index], words[index])
    joined: list[str] = []
    for word in words:
        if joined and (joined[-1], word) in CONTRACTED:
            joined[-1] = CONTRACTED[joined[-1], word]
        else:
            joined.append(word)
    return " ".join(joined)


def begins_with_vowel(word: str) -> bool:
    """Whether a French word begins with a vowel as it is spoken: "homme" does, "hibou" does not."""
    return word[0] in VOWELS or (word[0] == "h" and word not in ASPIRATED)


def _english_determiner(determiner: str, words: Sequence[str], negated: bool) -> str:
    following = next(word for word in words if word)
    if determiner == "a":
        return "an" if following[0] in "aeiou" or following == "honest" else "a"
    if determiner == "some" and negated:
        return "any"
    return determiner


def _english_verb(subject: Phrase, verb: Verb, modal: Verb | None, form: str) -> list[str]:
    """Subject and verb in English, with do, be or can where a negation or question needs it."""
    who, main = subject.english, modal or verb
    infinitive = [verb.english] if modal else []
    third = subject.person == IL
    if main is BE:
        finite = helper = {JE: "am", IL: "is"}.get(subject.person, "are")
        bare = []
    elif main is CAN:
        finite = helper = "can"
        bare = []
    else:
        finite = _third_person(main.english) if third else main.english
        helper = "does" if third else "do"
        bare = [main.english]
    if form == "question":
        return [helper, who, *bare, *infinitive]
    if form == "negation":
        not_ = "cannot" if main is CAN else f"{helper} not"
        return [who, not_, *bare, *infinitive]
    return [who, finite, *infinitive]


def _third_person(verb: str) -> str:
    """The English form for he or she: "look at" becomes "looks at"."""
    first, *others = verb.split()
    if first == "have":
        first = "has"
    elif first.endswith(("o", "ch", "sh", "s", "x")):
        first += "es"
    elif first.endswith("y") and first[-2] not in "aeiou":
        first = first[:-1] + "ies"
    else:
        first += "s"
    return " ".join([first, *others])


def _join(words: Sequence[str]) -> str:
    return " ".join(word for word in words if word)


# --- Chance: which words ------------------------------------------------------------------------

FORMS = ["statement", "statement", "negation", "question"]
DEFINITE = ["the", "the", "my", "this"]  # "my" stands for all possessives, "this" for "these"
WITH_A = [*DEFINITE, "a"]
EVERY = [*DEFINITE, "a", "some"]


def _draw_sentence(rng: random.Random) -> tuple[str, str]:
    """One sentence with its translation."""
    if rng.random() < 0.12:
        english, french = _draw_joined(rng)
        end = "."
    else:
        form = rng.choice(FORMS)
        english, french = rng.choice(PATTERNS)(rng, form)
        end = "?" if form == "question" else "."
    return f"{english} {end}", elide(f"{french} {end}")


def _draw_joined(rng: random.Random) -> tuple[str, str]:
    """Two short clauses, such as "he sleeps because she works"."""
    english, french = rng.choice(list(CONJUNCTIONS.items()))
    forms = [rng.choice(FORMS[:3]) for _ in range(2)]
    first, second = (_simple(rng, rng.choice(VERBS_ALONE), form) for form in forms)
    return f"{first[0]} {english} {second[0]}", f"{first[1]} {french} {second[1]}"


def _simple(rng: random.Random, verb: Verb, form: str) -> tuple[str, str]:
    """He sleeps."""
    return clause(_draw_subject(rng, verb), verb, form=form)


def _transitive(rng: random.Random, form: str) -> tuple[str, str]:
    """The boy sees a small cat in the garden."""
    verb = rng.choice(VERBS)
    subject = _draw_subject(rng, verb)
    rest = _draw_place(rng, ["in", "at", "near"]) if rng.random() < 0.25 else _draw_time(rng)
    what = _draw_object(rng, subject, verb, negated=form == "negation")
    return clause(subject, verb, what, rest, modal=_draw_modal(rng), form=form)


def _alone(rng: random.Random, form: str) -> tuple[str, str]:
    """The cat sleeps under the table."""
    verb = rng.choice(VERBS_ALONE)
    rest = _draw_place(rng) + _draw_time(rng)
    return clause(_draw_subject(rng, verb), verb, rest=rest, modal=_draw_modal(rng), form=form)


def _with_preposition(rng: random.Random, form: str) -> tuple[str, str]:
    """The man goes to the museum."""
    verb = rng.choice(VERBS_WITH_PREPOSITION)
    subject, what = _draw_subject(rng, verb), _draw_noun_phrase(rng, verb.kinds, WITH_A)
    return clause(subject, verb, what, _draw_time(rng), modal=_draw_modal(rng), form=form)


def _give(rng: random.Random, form: str) -> tuple[str, str]:
    """The king gives a book to the child."""
    what = _draw_noun_phrase(rng, GIVE.kinds, EVERY, negated=form == "negation")
    whom = _draw_noun_phrase(rng, frozenset({"person"}), WITH_A)
    rest = [(f"to {whom.english}", f"à {whom.french}")]
    return clause(_draw_subject(rng, GIVE), GIVE, what, rest, modal=_draw_modal(rng), form=form)


def _be_somewhere(rng: random.Random, form: str) -> tuple[str, str]:
    """The cat is under the bed."""
    return clause(_draw_subject(rng, BE), BE, rest=_draw_place(rng), form=form)


def _be_somehow(rng: random.Random, form: str) -> tuple[str, str]:
    """The old house is very beautiful."""
    adjective = rng.choice([one for one in ADJECTIVES if one.english != "new"])
    if adjective.kinds & {"person"} and rng.random() < 0.3:
        subject = rng.choice([who for who in SUBJECTS if who.person in (IL, ILS)])
    else:
        kind = frozenset({rng.choice(sorted(adjective.kinds))})
        subject = _draw_noun_phrase(rng, kind, DEFINITE)
        if rng.random() < 0.2:
            subject = both(subject, _draw_noun_phrase(rng, kind, DEFINITE))
    very = ("very ", "très ") if rng.random() < 0.3 else ("", "")
    french = agree(adjective, subject.feminine, subject.plural)
    rest = [(very[0] + adjective.english, very[1] + french)]
    return clause(subject, BE, rest=rest, form=form)


PATTERNS: list[Callable[[random.Random, str], tuple[str, str]]] = [
    _transitive,
    _transitive,
    _transitive,
    _alone,
    _with_preposition,
    _give,
    _be_somewhere,
    _be_somehow,
]


def _draw_subject(rng: random.Random, verb: Verb) -> Phrase:
    """Somebody, or an animal if the verb suits one, or a pronoun."""
    if rng.random() < 0.35:
        return rng.choice(SUBJECTS)
    animals_too = verb is BE or verb.english in ANIMALS_TOO
    living = frozenset({"person", "animal"} if animals_too else {"person"})
    subject = _draw_noun_phrase(rng, living, WITH_A)
    if rng.random() < 0.1:
        return both(subject, _draw_noun_phrase(rng, living, WITH_A))
    return subject


def _draw_object(rng: random.Random, subject: Phrase, verb: Verb, *, negated: bool) -> Phrase:
    """What the verb is done to; a pronoun only if it is somebody else than the subject."""
    if "person" in verb.kinds and rng.random() < 0.2:
        same = {JE: {JE, NOUS}, NOUS: {JE, NOUS}, VOUS: {VOUS}}.get(subject.person, set())
        return rng.choice([pronoun for pronoun in OBJECTS if pronoun.person not in same])
    if verb.english == "love":  # "i love cats" would need another article in French
        return _draw_noun_phrase(rng, verb.kinds, DEFINITE)
    return _draw_noun_phrase(rng, verb.kinds, EVERY, negated=negated)


def _draw_noun_phrase(
    rng: random.Random,
    kinds: frozenset[str],
    determiners: Sequence[str],
    *,
    negated: bool = False,
) -> Phrase:
    noun = rng.choice(_nouns(kinds))
    suited = [word for word in determiners if (word, noun.english) not in AVOIDED]
    if "mass" in noun.kinds:
        determiner = rng.choice([word for word in suited if word != "a"])
        return _choose_rest(rng, noun, determiner, plural=False, negated=negated)
    determiner = rng.choice(suited)
    often = 0.1 if noun.kinds & {"place", "area"} else 0.35
    plural = determiner == "some" or (determiner != "a" and rng.random() < often)
    return _choose_rest(rng, noun, determiner, plural=plural, negated=negated)


def _choose_rest(
    rng: random.Random, noun: Noun, determiner: str, *, plural: bool, negated: bool
) -> Phrase:
    """Everything about a noun phrase that the noun and the kind of determiner leave open."""
    number, owner = "", None
    if plural and rng.random() < 0.25:
        number = rng.choice(list(NUMBERS))
        determiner = "" if determiner == "some" else determiner
    if determiner == "the" and "person" not in noun.kinds and rng.random() < 0.15:
        owner = _draw_owner(rng)
    if determiner == "my":
        determiner = rng.choice(list(POSSESSIVES))
    if determiner == "this" and plural:
        determiner = "these"
    adjectives = _draw_adjectives(rng, noun)
    return noun_phrase(
        determiner, noun, adjectives, plural=plural, number=number, owner=owner, negated=negated
    )


def _draw_owner(rng: random.Random) -> Phrase:
    """One person, such as "my uncle"."""
    noun = rng.choice(_nouns(frozenset({"person"})))
    owned = ("my", noun.english) not in AVOIDED
    return noun_phrase(rng.choice(["the", *POSSESSIVES] if owned else ["the"]), noun)


def _draw_adjectives(rng: random.Random, noun: Noun) -> list[Adjective]:
    """None, one or two; of two, one goes before the noun in French and the other one after."""
    adjectives: list[Adjective] = []
    for table, chance in [(ADJECTIVES_BEFORE, 0.25), (ADJECTIVES_AFTER, 0.2)]:
        suited = [
            adjective
            for adjective in table
            if adjective.kinds & noun.kinds and (adjective.english, noun.english) not in AVOIDED
        ]
        if suited and rng.random() < chance:
            adjectives.append(rng.choice(suited))
    return adjectives


def _draw_place(
    rng: random.Random, prepositions: Sequence[str] = tuple(PLACES)
) -> list[tuple[str, str]]:
    """Where something happens, such as "in the garden"."""
    english = rng.choice(prepositions)
    french, kinds = PLACES[english]
    determiners = DEFINITE if english == "at" else WITH_A  # "à un hôtel" is no good French
    where = _draw_noun_phrase(rng, frozenset(kinds.split()), determiners)
    return [(f"{english} {where.english}", f"{french} {where.french}")]


def _draw_time(rng: random.Random) -> list[tuple[str, str]]:
    """When, sometimes."""
    return [rng.choice(list(TIMES.items()))] if rng.random() < 0.15 else []


def _draw_modal(rng: random.Random) -> Verb | None:
    return rng.choice([WANT, CAN]) if rng.random() < 0.2 else None


@lru_cache
def _nouns(kinds: frozenset[str]) -> list[Noun]:
    return [noun for noun in NOUNS if noun.kinds & kinds]
