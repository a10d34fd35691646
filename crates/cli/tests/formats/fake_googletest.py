"""Speaks googletest's language on the command line, in the environment and in its results."""

import json
import os
import sys

TESTS = [("First", "ok"), ("First", "bad"), ("First", "skip"), ("Par/Inst", "p/0"), ("Par/Inst", "p/1")]

if "--gtest_list_tests" in sys.argv:
    print("First.\n  ok\n  bad\n  skip\nPar/Inst.\n  p/0  # GetParam() = 1\n  p/1")
    sys.exit(0)
total, index = (int(os.environ.get("GTEST_" + name, one)) for name, one in (("TOTAL_SHARDS", 1), ("SHARD_INDEX", 0)))
groups, failed = {}, False
for place, (group, name) in enumerate(TESTS):
    if place % total != index:
        continue
    test = {"name": name, "result": "COMPLETED", "time": "0.25s"}
    groups.setdefault(group, []).append(test)
    print("[ RUN      ] %s.%s" % (group, name))
    if name == "skip":
        test["result"] = "SKIPPED"
    if name == "bad":
        failed = True
        print("some output of " + os.environ.get("DERIVED", "it"))
        test["failures"] = [{"failure": "x.cc:3\nExpected: <é>", "type": ""}]
        print("[  FAILED  ] %s.%s (0 ms)" % (group, name))
groups.setdefault("Off", []).append({"name": "DISABLED_x", "result": "SUPPRESSED", "time": "0s"})
suites = [{"name": name, "testsuite": tests} for name, tests in groups.items()]
with open(os.environ["GTEST_OUTPUT"][len("json:") :], "w", encoding="utf-8") as file:
    json.dump({"random_seed": 7, "testsuites": suites}, file, ensure_ascii=False)
sys.exit(failed)
