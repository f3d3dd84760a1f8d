"""A trained translator in a web page: its numbers in one file, its arithmetic in JavaScript.

numbers.py   a model's weights as int8, and the file that a page loads
plain.py     the model's arithmetic once more, without a module: what the page computes
writing.py   one self-contained page; the scripts that the book's pages load
command.py   `python -m lab page`
*.js         what runs in the reader's browser: plain scripts, joined by writing.py
"""
