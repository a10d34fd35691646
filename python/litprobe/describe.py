"""Turns config objects into plain JSON values, and tells what changed between two states of one.

A snapshot keeps a config's values as they are (lists and sets copied shallowly), so that taking and comparing
one costs little: there is one per directory with a local config. Only what differs is put into words.
"""

import lit.formats
from litprobe import plain


def snapshot(config, lit_config, known):
    """The values of `config` that matter to a runner, by field. `known` is the snapshot of a config like it, if there is one."""
    odd = plain.odd_fields(config, lit_config, known)
    return {
        "odd": odd,
        "name": config.name,
        "suffixes": group(config.suffixes),
        "excludes": group(config.excludes),
        "format": describe_format(config.test_format, odd),
        "environment": dict(config.environment),
        "substitutions": list(config.substitutions),
        "available_features": group(config.available_features),
        "unsupported": bool(config.unsupported),
        "pipefail": bool(config.pipefail),
        "limit_to_features": group(config.limit_to_features),
        "parallelism_group": describe_group(getattr(config, "parallelism_group", None)),
        "standalone_tests": bool(getattr(config, "standalone_tests", False)),
        "recursive_expansion_limit": number(config.recursiveExpansionLimit),
        "test_retry_attempts": number(getattr(config, "test_retry_attempts", None)),
        "test_source_root": config.test_source_root,
        "test_exec_root": config.test_exec_root,
        "max_individual_test_time": limit(getattr(config, "maxIndividualTestTime", None)),
        "hotstart_cold": describe_some(getattr(config, "hotstart_cold", False)),
        "hotstart_alone": describe_some(getattr(config, "hotstart_alone", False)),
    }


def group(names):
    """A set of them. What is none is empty here: then lit's code alone uses the config."""
    try:
        return set(names)
    except TypeError:
        return set()


def number(value):
    """A number that Python may hold as a bool, and that the runner holds in 32 bits."""
    return min(int(value), (1 << 32) - 1) if plain.is_count(value) else None


def limit(value):
    return float(value) if plain.HAS_LIMITS_IN_CONFIGS and plain.is_limit(value) else None


def changes(old, new):
    """The fields of snapshot `new` that differ from `old`, described; all of them if there is no `old`."""
    differing = (field for field in new if field != "odd" and (old is None or not same(old[field], new[field])))
    return {field: DESCRIBED.get(field, lambda value: value)(new[field]) for field in differing}


def same(old, new):
    """Equality that sees the order of a dict: a process's variables come in the order in which they were set."""
    if isinstance(old, dict) and isinstance(new, dict):
        return list(old.items()) == list(new.items())
    return old == new


def describe_format(test_format, odd):
    """How tests are found and run, or the name of the class that alone knows. `odd` are fields that only lit's code can use."""
    if test_format is None:
        return None
    kind = type(test_format)
    overridden = {"execute", "getTestsForPath", "getTestsInDirectory"}.intersection(vars(test_format))
    if not overridden:
        describe = NATIVE_FORMATS.get(kind)
        described = describe and describe(test_format, odd)
        if described:
            return described
    return {"kind": "python", "class": "%s.%s" % (kind.__module__, kind.__qualname__)}


def describe_shtest(test_format, odd):
    substitutions, commands = test_format.extra_substitutions, test_format.preamble_commands
    if odd or not plain.are_substitutions(substitutions):
        return None
    if type(commands) not in plain.SEQUENCES or not plain.are_names(list(commands)):
        return None
    return {
        "kind": "shtest",
        "execute_external": bool(test_format.execute_external),
        "extra_substitutions": describe_substitutions(substitutions),
        "preamble_commands": list(commands),
    }


def describe_googletest(test_format, odd):
    run_under = test_format.run_under
    if isinstance(run_under, str):
        import shlex

        run_under = shlex.split(run_under)
    if not odd.isdisjoint(("environment", "max_individual_test_time")) or not plain.are_names(run_under):
        return None
    prefixes = getattr(test_format, "test_prefixes", None)
    return {
        "kind": "googletest",
        "test_sub_dirs": list(test_format.test_sub_dirs),
        "test_suffix": min(test_format.test_suffixes, key=len),
        "test_prefix": next(iter(prefixes)) if prefixes else None,
        "run_under": list(run_under),
    }


def describe_executable(_test_format, _odd):
    # Of the config it uses nothing.
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
    """Key, value, and whether the value is a template in every lit. None of them if any is odd: the runner uses them not."""
    if not plain.are_substitutions(substitutions):
        return []
    return [[key, str(value), type(value) is plain.CAPTURES] for key, value in substitutions]


def describe_environment(environment):
    return [[name, str(value)] for name, value in environment.items() if plain.is_variable(name, value)]


def describe_names(names):
    # They are sets, whose order differs from one Python to the next.
    return sorted(name for name in names if type(name) is str)


DESCRIBED = {
    "suffixes": describe_names,
    "excludes": describe_names,
    "environment": describe_environment,
    "substitutions": describe_substitutions,
    "available_features": describe_names,
    "limit_to_features": describe_names,
}
