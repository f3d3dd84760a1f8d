"""What the notebooks and the book import: checks, sentences, batching, blocks on torch, plots."""
