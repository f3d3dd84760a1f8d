"""The checker of tests/test_shapes.py: types as Python reads them, an int will do for a float."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
