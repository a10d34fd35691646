"""The hotstart program, for Python: `python -m hotstart`, and `find_program` for those who start it themselves."""

from hotstart_lit.places import Missing, find_hotstart

__all__ = ["Missing", "find_program"]


def find_program():
    """The path of the hotstart program; raises `Missing` where there is none."""
    return find_hotstart(__file__)
