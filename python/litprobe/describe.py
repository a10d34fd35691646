"""Turns config objects into plain JSON values, and tells what changed between two states of one.

A snapshot keeps a config's values as they are (lists and sets copied shallowly), so that taking and comparing
one costs little: there is one per directory with a local config. Only what differs is put into words.
"""

import lit.formats
from lit.TestingConfig import SubstituteCaptures


def snapshot(config):
    """The values of `config` that matter to a runner, by field."""
    return {
        "name": config.name,
        "suffixes": set(config.suffixes),
        "excludes": set(config.excludes),
        "format": describe_format(config.test_format),
        "environment": dict(config.environment),
        "substitutions": list(config.substitutions),
        "available_features": set(config.available_features),
        "unsupported": bool(config.unsupported),
        "pipefail": bool(config.pipefail),
        "limit_to_features": set(config.limit_to_features),
        "parallelism_group": describe_group(getattr(config, "parallelism_group", None)),
        "standalone_tests": bool(getattr(config, "standalone_tests", False)),
        "recursive_expansion_limit": number(config.recursiveExpansionLimit, int),
        "test_retry_attempts": number(getattr(config, "test_retry_attempts", None), int),
        "test_source_root": config.test_source_root,
        "test_exec_root": config.test_exec_root,
        "max_individual_test_time": number(getattr(config, "maxIndividualTestTime", None), float),
        "hotstart_cold": describe_some(getattr(config, "hotstart_cold", False)),
        "hotstart_alone": describe_some(getattr(config, "hotstart_alone", False)),
    }


def number(value, kind):
    """A number that Python may hold as a bool, an int or a float."""
    return None if value is None else kind(value)


def changes(old, new):
    """The fields of snapshot `new` that differ from `old`, described; all of them if there is no `old`."""
    differing = (field for field in new if old is None or not same(old[field], new[field]))
    return {field: DESCRIBED.get(field, lambda value: value)(new[field]) for field in differing}


def same(old, new):
    """Equality that sees the order of a dict: a process's variables come in the order in which they were set."""
    if isinstance(old, dict) and isinstance(new, dict):
        return list(old.items()) == list(new.items())
    return old == new


def describe_format(test_format):
    """How tests are found and run, or the name of the class that alone knows."""
    if test_format is None:
        return None
    kind = type(test_format)
    overridden = {"execute", "getTestsForPath", "getTestsInDirectory"}.intersection(vars(test_format))
    if not overridden:
        describe = NATIVE_FORMATS.get(kind)
        if describe:
            return describe(test_format)
    return {"kind": "python", "class": "%s.%s" % (kind.__module__, kind.__qualname__)}


def describe_shtest(test_format):
    return {
        "kind": "shtest",
        "execute_external": bool(test_format.execute_external),
        "extra_substitutions": describe_substitutions(test_format.extra_substitutions),
        "preamble_commands": [str(command) for command in test_format.preamble_commands],
    }


def describe_googletest(test_format):
    run_under = test_format.run_under
    if isinstance(run_under, str):
        import shlex

        run_under = shlex.split(run_under)
    prefixes = getattr(test_format, "test_prefixes", None)
    return {
        "kind": "googletest",
        "test_sub_dirs": list(test_format.test_sub_dirs),
        "test_suffix": min(test_format.test_suffixes, key=len),
        "test_prefix": next(iter(prefixes)) if prefixes else None,
        "run_under": [str(word) for word in run_under],
    }


def describe_executable(_test_format):
    return {"kind": "executable"}


NATIVE_FORMATS = {
    lit.formats.ShTest: describe_shtest,
    lit.formats.GoogleTest: describe_googletest,
    lit.formats.ExecutableTest: describe_executable,
}


def describe_group(group):
    """A name, nothing, or a function of the test."""
    if callable(group):
        return {"kind": "callable"}
    return None if group is None else {"kind": "named", "name": str(group)}


def describe_some(names):
    """hotstart's own attributes: true for all tools or tests, or names of them."""
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    if isinstance(names, (list, tuple, set, frozenset)):
        return {"names": sorted(str(name) for name in names)}
    return {"all": bool(names)}


def describe_substitutions(substitutions):
    """Key, value, and whether the value is a template in every lit."""
    return [[describe_key(key), str(value), isinstance(value, SubstituteCaptures)] for key, value in substitutions]


def describe_key(key):
    """A pattern; a compiled one is taken apart again."""
    if isinstance(key, str):
        return key
    import re

    letters = "".join(letter for letter in "imsx" if key.flags & getattr(re, letter.upper()))
    return "(?%s)%s" % (letters, key.pattern) if letters else key.pattern


def describe_environment(environment):
    return [[str(key), str(value)] for key, value in environment.items()]


def describe_names(names):
    # They are sets, whose order differs from one Python to the next.
    return sorted(str(name) for name in names)


DESCRIBED = {
    "suffixes": describe_names,
    "excludes": describe_names,
    "environment": describe_environment,
    "substitutions": describe_substitutions,
    "available_features": describe_names,
    "limit_to_features": describe_names,
}
