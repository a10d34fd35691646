#!/bin/sh
# Passes if it is run at all, by a path.
[ -x "$0" ]
