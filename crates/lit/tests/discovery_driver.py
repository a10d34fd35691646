"""Lets lit discover tests and prints what it found as JSON, for against_lit_discovery.rs.

Arguments: a JSON object {"package": directory or null, "builtin": {...}, "args": [...]}.
"""

import json
import sys

given = json.loads(sys.argv[1])
sys.path[:1] = [given["package"]] if given["package"] else []
import lit.main  # noqa: E402

TEMPORARY = ("TMP", "TMPDIR", "TEMP", "TEMPDIR")


def describe(config):
    return {
        "suffixes": sorted(config.suffixes),
        "excludes": sorted(config.excludes),
        # Those are set for the run, which there is none here.
        "environment": [[k, v] for k, v in config.environment.items() if k not in TEMPORARY],
        "substitutions": [[k, str(v)] for k, v in config.substitutions],
        "available_features": sorted(config.available_features),
        "unsupported": bool(config.unsupported),
        "pipefail": bool(config.pipefail),
        "limit_to_features": sorted(config.limit_to_features),
        "standalone_tests": bool(config.standalone_tests),
        "recursive_expansion_limit": config.recursiveExpansionLimit,
        "test_retry_attempts": getattr(config, "test_retry_attempts", None),
        "format": type(config.test_format).__name__,
    }


def dump(tests, *_):
    rows = [([test.getFullName(), test.getSourcePath(), test.getExecPath()], test.config) for test in tests]
    rows.sort(key=lambda row: row[0])
    numbers, configs = {}, []
    for row, config in rows:
        if id(config) not in numbers:
            numbers[id(config)] = len(configs)
            configs.append(describe(config))
        row.append(numbers[id(config)])
    print(json.dumps({"tests": [row for row, _ in rows], "configs": configs}))


lit.main.print_discovered = dump
sys.argv = ["lit", "--show-tests"] + given["args"]
lit.main.main(given["builtin"])
