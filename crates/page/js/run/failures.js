// What failed: which RUN line and stage, what FileCheck expected beside what it found, and the output.

import { el } from "../dom.js";
import { count, nanos } from "../format.js";

const AT_ONCE = 100;

export function failures(run) {
  if (!run.failures.length) return el("p", {}, "No test failed.");
  const box = el("div");
  const more = el("button", { type: "button", class: "card more" });
  let shown = 0;
  const add = () => {
    const next = run.failures.slice(shown, shown + AT_ONCE);
    box.append(...next.map((failure, index) => entry(run, failure, shown + index === 0)));
    shown += next.length;
    more.hidden = shown === run.failures.length;
    more.textContent = `Show more (${count(run.failures.length - shown)} left)`;
  };
  more.addEventListener("click", add);
  add();
  return el("div", {}, box, more);
}

function entry(run, failure, open) {
  const { test } = failure;
  const time = run.nanos(test) === null ? "" : `, ${nanos(run.nanos(test))}`;
  const news = run.before(test) !== null && !run.failedBefore(test) ? el("span", { class: "odd" }, " · passed before") : null;
  const body = el("div");
  const fill = () => {
    if (body.childElementCount) return;
    if (failure.blame) body.append(el("p", {}, failure.blame));
    body.append(...failure.checks.map(check), el("h3", {}, "Output"), el("pre", { tabindex: 0 }, failure.output || "There is none."));
  };
  const summary = el("summary", {}, el("b", { class: "bad" }, run.code(test).name), ` ${run.name(test)}`, el("span", { class: "soft" }, time), news);
  const details = el("details", { class: "failure", open, ontoggle: () => details.open && fill() }, summary, body);
  if (open) fill();
  return details;
}

// FileCheck's check lines on the left, its input on the right, in the rows where they met.
function check({ place, message, rows }) {
  const row = ([kind, expected, found]) => el("tr", { class: kind }, el("td", {}, expected), el("td", {}, found));
  const head = el("tr", {}, el("th", { scope: "col" }, "expected"), el("th", { scope: "col" }, "found"));
  const sides = el("table", { class: "sides" }, el("thead", {}, head), el("tbody", {}, ...rows.map(row)));
  return el("div", {}, el("h3", {}, `${place}: ${message}`), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "expected and found" }, sides));
}
