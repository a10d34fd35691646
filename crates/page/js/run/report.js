// The page of a test run: its parts, in the order of what one wants to know first.

import { el } from "../dom.js";
import { count, nanos } from "../format.js";
import { before } from "./before.js";
import { failures } from "./failures.js";
import { list } from "./list.js";
import { Run, tone } from "./model.js";
import { starts } from "./starts.js";
import { time } from "./time.js";
import { treemap } from "./treemap.js";
import { workers } from "./workers.js";

const ENDS = {
  completed: "",
  interrupted: "The run was interrupted.",
  max_failures: "The run ended early: as many tests had failed as --max-failures allows.",
  max_time: "The run ended early: the time given by --max-time was over.",
};

export function report(data, into) {
  const run = new Run(data);
  const tests = list(run);
  const parts = [
    ["failures", "Failures", failures(run)],
    ["tests", "Tests, the slowest first", tests.element],
    ["directories", "Time by directory", treemap(run, tests.showDirectory)],
    ["time", "Time by tool and by phase", time(run)],
    ["workers", "Workers over time", workers(run)],
    ["starts", "How processes were started", starts(run)],
    ["before", "Compared with the run before", before(run)],
  ].filter(([, , content]) => content);
  const links = parts.map(([id, title]) => el("a", { href: `#${id}` }, title));
  into.append(header(run), cards(run, tests), el("nav", { "aria-label": "parts of this page" }, ...links));
  for (const [id, title, content] of parts) {
    into.append(el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), content));
  }
}

function header(run) {
  const when = run.began === null ? "" : `${new Date(run.began).toLocaleString()}, `;
  const told = `${when}${count(run.size)} tests in ${nanos(run.elapsed)}, ${run.workers} at a time, rules of lit ${run.lit.join(".")}`;
  return el("header", {}, el("p", { class: "soft" }, told), el("p", { class: "mono soft" }, run.command),
    ENDS[run.end] ? el("p", { class: "warn" }, ENDS[run.end]) : null);
}

// One card for each result code that there is; it filters the list of tests.
function cards(run, tests) {
  const card = (code) => {
    const press = () => tests.showCode(code.name);
    return el("button", { class: "card", type: "button", "data-code": code.name, onclick: press },
      el("b", { class: tone(code) }, count(code.count)), code.label);
  };
  const there = run.codes.filter((code) => code.count > 0);
  const still = (title, value) => el("div", { class: "card" }, el("b", {}, value), title);
  const total = run.tests.ns.reduce((sum, ns) => sum + (ns ?? 0), 0);
  return el("div", { class: "cards" }, still("wall time", nanos(run.elapsed)), still("time of all tests", nanos(total)), ...there.map(card));
}
