// What changed since the tests ran last, as lit's record of times has it (.lit_test_times.txt).

import { el, table } from "../dom.js";
import { change, count, nanos } from "../format.js";
import { difference } from "./list.js";

const SHOWN = 20;

export function before(run) {
  const known = run.all().filter((test) => difference(run, test) !== null);
  if (!known.length) return el("p", {}, "None of these tests is on record from an earlier run.");
  const fails = (test) => run.code(test).fail;
  const groups = [
    ["fail now, and passed", known.filter((test) => fails(test) && !run.failedBefore(test))],
    ["pass now, and failed", known.filter((test) => !fails(test) && run.failedBefore(test))],
    ["failed both times", known.filter((test) => fails(test) && run.failedBefore(test))],
    ["new, or not on record", run.all().filter((test) => run.nanos(test) !== null && run.before(test) === null)],
  ];
  const sum = (value) => known.reduce((total, test) => total + value(test), 0);
  const [now, then] = [sum((test) => run.nanos(test)), sum((test) => run.before(test))];
  const rows = groups.map(([title, tests]) => [title, count(tests.length), tests.slice(0, SHOWN).map((test) => run.name(test)).join(", ")
    + (tests.length > SHOWN ? ", …" : "")]);
  const largest = [...known].sort((a, b) => Math.abs(difference(run, b)) - Math.abs(difference(run, a))).slice(0, SHOWN);
  const row = (test) => [run.name(test), nanos(run.before(test)), nanos(run.nanos(test)), change(difference(run, test))];
  return el("div", {},
    el("p", {}, `${count(known.length)} tests ran both times: ${nanos(then)} then, ${nanos(now)} now (${change(now - then)}).`),
    table(["", "tests", "which"], rows, { wrap: [2] }),
    el("h3", {}, "Largest changes"), table(["test", "before", "now", "change"], largest.map(row)));
}
