"""Modules of the folders of tests/, several of which have modules of one name."""

import sys
from functools import cache
from importlib import import_module
from pathlib import Path


@cache
def module(home: Path, name: str):
    """The module `name` of `home`, imported with that folder first; it imports its neighbours when it is loaded.

    Nothing of the folder stays in `sys.modules`: the next folder's module of the same name is another one.
    """
    sys.path.insert(0, str(home))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(home))
        for other in [key for key, value in sys.modules.items() if file_of(value).parent == home]:
            del sys.modules[other]


def file_of(loaded) -> Path:
    return Path(getattr(loaded, "__file__", None) or "/")
