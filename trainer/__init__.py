"""The real training of an assembled module: recipes, corpora, checkpoints, decoding and scores."""
