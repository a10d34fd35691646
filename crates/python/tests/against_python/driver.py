"""Answers what Python makes of given inputs. One JSON object per line in and out; nothing here knows hotstart."""
import argparse
import getopt
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import traceback
import unicodedata
import warnings


def matches(pattern, text):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        re.purge()
        compiled = re.compile(pattern)
    found = [kind(text) is not None for kind in (compiled.match, compiled.fullmatch, compiled.search)]
    return found + [bool(told)]


def substituted(pattern, template, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.sub(pattern, template, text)


def kind(code):
    """Bits for each question about a character; the last says that this Python does not know it."""
    c = chr(code)
    asked = [c.isspace(), c.isalpha(), c.isdecimal(), c.isprintable(), c.isidentifier(), ("a" + c).isidentifier()]
    asked += [re.match(pattern, c) is not None for pattern in (r"\w", r"\s", r"\d")]
    asked += [len(("a%sb" % c).splitlines()) == 2, unicodedata.category(c) == "Cn"]
    return sum(bit << place for place, bit in enumerate(asked))


def argument_file(words):
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@", exit_on_error=False)
    return parser._read_args_from_files(words)


def os_error(number):
    error = OSError(number, os.strerror(number), "x")
    return [type(error).__name__, str(error)]


def executed(name, path, cwd):
    """What subprocess executes, where programs tell their own path."""
    env = {} if path is None else {"PATH": path}
    return subprocess.run([name], env=env, cwd=cwd, capture_output=True, check=True).stdout.decode()


def integer(text, base):
    value = int(text, base)
    return str(value) if abs(value) < 1 << 100 else "big"


OPERATIONS = {
    "match": matches,
    "sub": substituted,
    "kinds": lambda start, end: [kind(code) for code in range(start, end)],
    "digits": lambda: [[code, int(chr(code))] for code in range(0x110000) if chr(code).isdecimal()],
    "repr": repr,
    "repr_bytes": lambda text: repr(text.encode("latin-1")),
    "text": lambda text: [text.strip(), text.lstrip(), text.rstrip(), text.split(), text.splitlines()],
    "int": integer,
    "float": lambda text: repr(float(text)),
    "floats": lambda text: [repr(float(text)), "%.4f" % float(text)],
    "quote": shlex.quote,
    "split": shlex.split,
    "glob": lambda pattern: sorted(glob.glob(pattern)),
    "json": lambda text: json.dumps(json.loads(text), indent=2, sort_keys=True),
    "path": lambda path: [os.path.normpath(path), list(os.path.split(path)), os.path.join("/base", path)],
    "realpath": os.path.realpath,
    "getopt": lambda words: getopt.gnu_getopt(words, "wbuI:U:r", ["strip-trailing-cr", "strip-all"]),
    "argument_file": argument_file,
    "os_error": os_error,
    "executed": executed,
}


def answer(operation, case):
    try:
        return {"value": OPERATIONS[operation](*case)}
    except Exception as error:
        return {"error": "".join(traceback.format_exception_only(error)).rstrip("\n")}


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if "cwd" in request:
            os.chdir(request["cwd"])
        print(json.dumps([answer(request["op"], case) for case in request["cases"]]), flush=True)


main()
