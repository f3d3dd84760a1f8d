"""Words that readers type into the book's search, and where the first hit has to lead."""

from pathlib import Path
from urllib.parse import quote

from tests.browsing import Page

FOUND = {  # what readers type: pages, one of which has to come first; # is a section of it
    "cross-attention": "glossary 07_decoder#",
    "tokenization": "01_embedding#",
    "exposure bias": "08_teacher_forcing#",
    "KV cache": "09_inference#",
    "layernorm": "05_layer_norm#",
    "sqrt(d_k)": "03_attention#",
    "warmup": "08_teacher_forcing#",
    "RoPE": "glossary relative_positions#",
    "beam size": "09_inference#",
    "teacher forcing": "glossary 08_teacher_forcing",
    "causal mask": "glossary 03_attention#",
    "label smoothing": "glossary 08_teacher_forcing#",
    "weight tying": "07_decoder#",
    "GPT": "12_language_model#",
    "BPE": "01_embedding#",
    "perplexity": "glossary 12_language_model",
    "top-p": "09_inference#",
    "GQA": "04_multi_head_attention#",
    "gradient clipping": "08_teacher_forcing#",
    "RMSNorm": "05_layer_norm#",
    "BatchNorm": "05_layer_norm#",
    "skip connection": "05_layer_norm#",
    "induction head": "04_multi_head_attention#",
    "Adam": "08_teacher_forcing#",
    "self-attention": "glossary 03_attention#",
    "Reformer": "15_reformer#",
    "Transformer-XL": "14_longer_context#",
    "adaptive span": "14_longer_context#",
    "LSH": "15_reformer#",
    "FlashAttention": "glossary 03_attention# 15_reformer#",
    "ViT": "glossary 13_pictures#",
    "scaling laws": "12_language_model#",
    "paired bootstrap": "glossary 11_your_translator#",
    "mixed precision": "11_your_translator#",
    "Xavier": "10_full_model#",
    "checkpoint averaging": "10_full_model#",
    "mutation testing": "glossary 16_bug_hunt#",
    "dropout": "glossary 06_encoder#",
    "early stopping": "glossary 11_your_translator#",
    "BLEU": "glossary 09_inference#",
}


def first_hits(window: Page, html: Path) -> dict[str, str]:
    """For each word the first hit of the built book's search, without the ending of its page."""
    first = "document.querySelector('ul.search a')?.getAttribute('href')"
    page = (html / "search.html").as_uri()
    return {
        typed: str(window.show(f"{page}?q={quote(typed)}", first, first)).replace(".html", "")
        for typed in FOUND
    }


def leads(typed: str, href: str) -> bool:
    """Say whether a hit is one of those that a word has to lead to."""
    return any(href.startswith(one) for one in FOUND[typed].split())
