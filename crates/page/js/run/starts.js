// Cold and warm starts by tool, and the reasons of the cold ones.

import { el, table } from "../dom.js";
import { count, nanos } from "../format.js";

export function starts(run) {
  if (!run.starts.length) return el("p", {}, "No process was started.");
  const told = ([reason, times]) => el("div", {}, `${count(times)}: ${reason}`);
  const row = (tool) => [tool.program, count(tool.resets), count(tool.forks), count(tool.cold), nanos(tool.saved), el("div", {}, ...tool.reasons.map(told))];
  const sum = (key) => run.starts.reduce((total, tool) => total + tool[key], 0);
  const all = ["all", ...["resets", "forks", "cold"].map((key) => count(sum(key))), nanos(sum("saved")), ""];
  return el("div", {}, table(["tool", "reset", "forked", "cold", "time saved", "why cold"], [...run.starts.map(row), all], { wrap: [5] }));
}
