"""Runs PyPI's filecheck in one process, on one case after the other.

A case is a number of fields, each with its length in a line before it: arguments (separated by 0x1f), check file and input. The answer to
each is a byte: + if it passes without output. The check file is named `check`, in the working directory.
"""

import io
import sys

from filecheck.main import main


def passes(arguments, check, data):
    with open("check", "wb") as file:
        file.write(check)
    sys.stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    try:
        main(["filecheck", *arguments])
        status = 0
    except SystemExit as end:
        status = end.code
    except Exception:  # It would end with a traceback.
        status = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return status == 0 and not sys.stdout.buffer.getvalue() and not sys.stderr.buffer.getvalue()


def serve(requests, answers):
    while length := requests.readline():
        fields = [requests.read(int(length))]
        fields += [requests.read(int(requests.readline())) for _ in range(2)]
        arguments = fields[0].decode().split("\x1f")
        answers.write(b"+" if passes(arguments, fields[1], fields[2]) else b"-")
        answers.flush()


serve(sys.stdin.buffer, sys.stdout.buffer)
