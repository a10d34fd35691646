"""Puts off the import of a module that another one imports for purposes which have no place here.

lit.BooleanExpression ends with tests of itself. The `unittest` that they need takes a tenth of hotstart's start, and the
`inspect` of lit.LitConfig nearly as much.
"""

import sys


class Later(type(sys)):
    """A stand-in for the module `name` while its context lasts; after that, whoever asks it for more than `values` gets the
    module's own."""

    def __init__(self, name, **values):
        super().__init__(name)
        vars(self).update(values)

    def __enter__(self):
        sys.modules.setdefault(self.__name__, self)

    def __exit__(self, *_error):
        self.leave()

    def leave(self):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]

    def __getattr__(self, name):
        import importlib

        self.leave()
        return getattr(importlib.import_module(self.__name__), name)
