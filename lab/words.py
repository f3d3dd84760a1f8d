"""The words of the small grammar: nouns, adjectives and verbs in English and French."""

from dataclasses import dataclass


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
