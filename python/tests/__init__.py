"""Tests of the package that hotstart embeds; run as `python -m unittest discover -s python/tests -t python`."""
