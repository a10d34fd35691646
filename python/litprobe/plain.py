"""Tells which values of a config the runner can use itself: those of the types that lit's code expects.

lit uses a config's objects as they are. An object of another type fails, or has an effect of its own, where that code happens to meet it:
`None` in the environment at the first program, a number among the features at the first pattern. So tests with such a value are
run by that code, in the helper, as if their format was written in Python.
"""

import os
import pathlib

import lit
import lit.TestingConfig

VERSION = lit.__versioninfo__[0]
# Before, the value is made text where it is used, whatever it is.
VALUES_ARE_TEXT = VERSION >= 20
HAS_LIMITS_IN_CONFIGS = VERSION >= 23
HAS_OUTPUT_LIMIT = VERSION >= 20

CAPTURES = getattr(lit.TestingConfig, "SubstituteCaptures", None)
SEQUENCES = {list, tuple}
GROUPS = {list, tuple, set, frozenset}
# lit takes these apart itself.
NOT_PATHS = ("PATH", "DYLD_")
DEFAULT_OUTPUT_LIMIT = 10240
INFINITE = float("inf")


def odd_fields(config, lit_config, known=None):
    """Names of the fields of `config` that only lit's code can use. `known` is an earlier snapshot: most values are equal."""
    odd = set()
    for name, is_plain, value in (
        ("substitutions", are_substitutions, config.substitutions),
        ("environment", is_environment, config.environment),
        ("suffixes", are_names, config.suffixes),
        ("excludes", are_names, config.excludes),
        ("available_features", are_names, config.available_features),
        ("limit_to_features", are_names, config.limit_to_features),
    ):
        is_same = known is not None and type(value) is type(known[name]) and value == known[name]
        if name in known["odd"] if is_same else not is_plain(value):
            odd.add(name)
    if not is_count(getattr(config, "test_retry_attempts", 0)):
        odd.add("test_retry_attempts")
    if HAS_LIMITS_IN_CONFIGS and not is_limit(getattr(config, "maxIndividualTestTime", None)):
        odd.add("max_individual_test_time")
    if output_limit(lit_config) is None:
        odd.add("output_limit")
    return frozenset(odd)


def are_substitutions(pairs):
    """Pairs of text, or of text and a template."""
    if type(pairs) not in SEQUENCES or not SEQUENCES.issuperset(map(type, pairs)):
        return False
    if not {2}.issuperset(map(len, pairs)):
        return False
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    if not {str}.issuperset(map(type, keys)):
        return False
    if VALUES_ARE_TEXT:
        values = [value.substitution if type(value) is CAPTURES else value for value in values]
        if not {str}.issuperset(map(type, values)):
            return False
    else:
        values = map(str, values)
    return is_text("".join(keys)) and is_text("".join(values))


def is_environment(environment):
    return isinstance(environment, dict) and all(is_variable(*item) for item in environment.items())


def is_variable(name, value):
    """Whether it reaches a process as it is. A path does so too."""
    if type(name) is not str or "=" in name or not is_argument(name):
        return False
    if isinstance(value, pathlib.PurePath) and not name.startswith(NOT_PATHS):
        value = str(value)
    return type(value) is str and is_argument(value)


def are_names(names):
    return type(names) in GROUPS and {str}.issuperset(map(type, names)) and is_text("".join(names))


def is_count(number):
    return type(number) in (int, bool) and number >= 0


def is_limit(number):
    return type(number) in (int, bool, float) and -INFINITE < number < INFINITE


def is_text(text):
    """Whether it is text of characters only: Python's strings can hold halves of them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_argument(text):
    """Whether it can be handed to a process."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def output_limit(lit_config):
    """lit's reading of `-D output_limit`; None if it has an error there."""
    if not HAS_OUTPUT_LIMIT:
        return DEFAULT_OUTPUT_LIMIT
    try:
        limit = int(lit_config.params.get("output_limit", DEFAULT_OUTPUT_LIMIT))
    except Exception:
        return None
    return max(-(1 << 63), min(limit, (1 << 63) - 1))
