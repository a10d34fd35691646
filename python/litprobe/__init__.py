"""Evaluates lit's configuration files for hotstart, with the real `lit` package, and decides nothing.

The runner embeds these files, hands them over when it starts Python, and asks one question per line of JSON.
Everything here is a config's own value on its way out; what follows from it (which tests exist, how they run)
is the runner's business. Only what is needed is imported, as each run of hotstart waits for this package.
"""

PROTOCOL = 1
