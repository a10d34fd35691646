"""Takes tests from the process that finds them to the one that runs them, where they are more than their names.

A format may set conditions on the tests that it finds, or give them configs of their own. lit hands its tests to its workers by pickle, and
so it is done here. Suite and config, which the other process has, are only named.
"""

import base64
import io
import pickle

import lit.Test


class Uncarriable(Exception):
    """A test that has no pickle."""


def pack(tests, suite, config, lit_config):
    """The place and the pickle of each test that differs from one that is made of its name alone."""
    names = {id(thing): name for name, thing in shared(suite, config, lit_config).items()}
    return [[place, packed(test, names)] for place, test in enumerate(tests) if not is_plain(test, suite, config)]


def unpack(text, suite, config, lit_config):
    unpickler = pickle.Unpickler(io.BytesIO(base64.b64decode(text)))
    unpickler.persistent_load = shared(suite, config, lit_config).__getitem__
    return unpickler.load()


def shared(suite, config, lit_config):
    """What both processes have, by name."""
    return {"format": config.test_format, "suite config": suite.config, "config": config, "suite": suite, "lit_config": lit_config}


def is_plain(test, suite, config):
    file = test.file_path or None
    results = test.gtest_json_file if file else None
    return type(test) is lit.Test.Test and vars(test) == vars(lit.Test.Test(suite, test.path_in_suite, config, file, results))


def packed(test, names):
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.persistent_id = lambda thing: names.get(id(thing))
    try:
        pickler.dump(test)
    except Exception as error:
        raise Uncarriable(
            "the format has changed the test '%s' while it found it, and the test cannot be handed to the process that runs it: %s: %s"
            % ("/".join(test.path_in_suite), type(error).__name__, error)
        ) from None
    return base64.b64encode(buffer.getvalue()).decode()
