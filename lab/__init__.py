"""What the notebooks and the book import: checks, corpora, batching, blocks on torch, plots."""
