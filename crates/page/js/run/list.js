// The list of all tests. Only the rows in sight exist, so that 50,000 tests cost as much as 30. Arrow keys move the selection, `/`
// goes to the filter; the selected test's details are below the list.

import { el, table } from "../dom.js";
import { change, count, nanos } from "../format.js";
import { tone } from "./model.js";

const ROW = 28;
const SPARE = 8;
const SHOWN = 16;

const COLUMNS = [
  ["result", (run, test) => run.tests.code[test], 1],
  ["test", (run, test) => run.name(test), 1],
  ["time", (run, test) => run.nanos(test) ?? -1, -1],
  ["before", (run, test) => run.before(test) ?? -1, -1],
  ["change", (run, test) => difference(run, test) ?? -Infinity, -1],
  ["worker", (run, test) => run.tests.worker[test] ?? -1, 1],
];

export function difference(run, test) {
  const [now, before] = [run.nanos(test), run.before(test)];
  return now === null || before === null ? null : now - before;
}

export function list(run) {
  const state = { shown: [], selected: -1, column: 2, down: COLUMNS[2][2], code: "", directory: null, text: "" };
  const rows = el("div", { style: "position:relative" });
  const search = el("input", { type: "search", placeholder: "filter by name  ( / )", "aria-label": "filter by name" });
  const names = run.codes.filter((code) => code.count > 0).map((code) => el("option", { value: code.name }, `${code.name} (${count(code.count)})`));
  const codes = el("select", { "aria-label": "result" }, el("option", { value: "" }, "all results"), ...names);
  const told = el("span", { class: "soft", role: "status" });
  const clear = el("button", { type: "button", hidden: true }, "all directories");
  const panel = el("div", { class: "panel", "aria-live": "polite" }, "Select a test to see its RUN lines.");
  const heads = COLUMNS.map(([title], index) => el("button", { type: "button", onclick: () => sortBy(index) }, title));
  const frame = el("div", { class: "list", tabindex: 0, role: "listbox", "aria-label": "tests",
    style: `max-height:${ROW * SHOWN + 34}px` }, el("div", { class: "head" }, ...heads), rows);

  function choose() {
    const text = state.text.toLowerCase();
    const matches = (test) => (!state.code || run.code(test).name === state.code)
      && (!state.directory || state.directory(test)) && (!text || run.name(test).toLowerCase().includes(text));
    state.shown = run.all().filter(matches);
    sort();
  }

  function sort() {
    const value = COLUMNS[state.column][1];
    const keys = new Map(state.shown.map((test) => [test, value(run, test)]));
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    state.shown.sort((a, b) => state.down * order(keys.get(a), keys.get(b)) || a - b);
    heads.forEach((head, index) => head.setAttribute("aria-sort", index === state.column ? (state.down < 0 ? "descending" : "ascending") : "none"));
    heads.forEach((head, index) => { head.textContent = COLUMNS[index][0] + (index === state.column ? (state.down < 0 ? " ↓" : " ↑") : ""); });
    state.selected = -1;
    frame.scrollTop = 0;
    rows.style.height = `${state.shown.length * ROW}px`;
    told.textContent = `${count(state.shown.length)} of ${count(run.size)} tests`;
    render();
  }

  function sortBy(index) {
    state.down = index === state.column ? -state.down : COLUMNS[index][2];
    state.column = index;
    sort();
  }

  function render() {
    const first = Math.max(0, Math.floor(frame.scrollTop / ROW) - SPARE);
    const visible = state.shown.slice(first, first + SHOWN + 2 * SPARE);
    rows.replaceChildren(...visible.map((test, index) => row(test, first + index)));
  }

  function row(test, place) {
    const code = run.code(test);
    const [now, before, changed] = [run.nanos(test), run.before(test), difference(run, test)];
    const cells = [el("span", { class: tone(code) }, code.name), el("span", { title: run.name(test) }, run.name(test)),
      now === null ? "–" : nanos(now), before === null ? "–" : nanos(before), changed === null ? "–" : change(changed),
      run.tests.worker[test] === null ? "–" : String(run.tests.worker[test] + 1)];
    return el("div", { class: "row", role: "option", style: `top:${place * ROW}px`, "aria-selected": String(place === state.selected),
      onclick: () => select(place) }, ...cells.map((cell) => (typeof cell === "string" ? el("span", {}, cell) : cell)));
  }

  function select(place) {
    if (!state.shown.length) return;
    state.selected = Math.min(Math.max(place, 0), state.shown.length - 1);
    const [top, height] = [state.selected * ROW, frame.clientHeight - 36];
    if (top < frame.scrollTop) frame.scrollTop = top;
    if (top + ROW > frame.scrollTop + height) frame.scrollTop = top + ROW - height;
    render();
    panel.replaceChildren(...details(run, state.shown[state.selected]));
  }

  const keys = { ArrowDown: 1, ArrowUp: -1, PageDown: SHOWN, PageUp: -SHOWN, Home: -Infinity, End: Infinity };
  frame.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.target !== frame) return;
    event.preventDefault();
    const by = keys[event.key];
    select(Number.isFinite(by) ? state.selected + by : by < 0 ? 0 : state.shown.length - 1);
  });
  frame.addEventListener("scroll", () => requestAnimationFrame(render));
  search.addEventListener("input", () => { state.text = search.value; choose(); });
  codes.addEventListener("change", () => { state.code = codes.value; mark(); choose(); });
  clear.addEventListener("click", () => { state.directory = null; clear.hidden = true; choose(); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    search.focus();
  });
  const mark = () => document.querySelectorAll(".card[data-code]")
    .forEach((card) => card.setAttribute("aria-pressed", String(card.dataset.code === state.code)));
  const show = () => document.getElementById("tests").scrollIntoView();

  choose();
  return {
    element: el("div", {}, el("div", { class: "tools" }, search, codes, clear, told), frame, panel),
    showCode(name) {
      state.code = codes.value = state.code === name ? "" : name;
      mark();
      choose();
      show();
    },
    showDirectory(test, name) {
      state.directory = test;
      clear.hidden = false;
      clear.textContent = `only ${name} ×`;
      choose();
      show();
    },
  };
}

function details(run, test) {
  const code = run.code(test);
  const title = el("div", {}, el("b", { class: tone(code) }, code.name), ` ${run.name(test)}`);
  const lines = run.lines[test];
  if (!lines) return [title, el("div", { class: "soft" }, run.nanos(test) === null ? "It did not run." : "No RUN line was timed.")];
  const row = ([label, wall, cpu]) => [label, nanos(wall), nanos(cpu)];
  return [title, table(["RUN line", "elapsed", "CPU"], lines.map(row))];
}
