// Where the time went: CPU time of tools, and the phases of the run.

import { bar, el, table } from "../dom.js";
import { count, nanos, percent } from "../format.js";

export function time(run) {
  const whole = run.phases.reduce((sum, [, ns]) => sum + ns, 0);
  const phase = ([name, ns]) => [name, nanos(ns), percent(ns, whole), bar(ns / whole)];
  const parts = [el("h3", {}, "Phases of the run"), table(["phase", "wall", "share", ""], run.phases.map(phase))];
  if (!run.tools.length) return el("div", {}, ...parts);
  const most = Math.max(...run.tools.map((tool) => tool.cpu), 1);
  const tool = ({ name, runs, cpu, wall }) => [name, count(runs), nanos(cpu), nanos(cpu / runs), nanos(wall), bar(cpu / most)];
  return el("div", {}, ...parts, el("h3", {}, "Tools"), table(["tool", "runs", "CPU", "CPU per run", "elapsed", ""], run.tools.map(tool)),
    el("p", { class: "soft" }, "The elapsed time of a stage counts from the start of its pipeline: stages that wait for each other both count it."));
}
