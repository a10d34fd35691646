// Compares every figure that a page shows of a run with the JSON report (-o) of the same run. What that report does not have (phases,
// tools, starts, workers, the run before) is compared with the data that the page carries; crates/cli/tests/lit/page.rs compares those
// with --record, --time-by and --explain. Words of figures are made here again, since they are what is tested.

const ROW = 28;
const ROWS_AT_ONCE = 30;

const count = (value) => value.toLocaleString("en-US");

function seconds(value) {
  const size = Math.abs(value);
  const [scale, unit] = size >= 1 || size === 0 ? [1, "s"] : size >= 1e-3 ? [1e3, "ms"] : size >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  const scaled = size * scale;
  const text = scaled === 0 ? "0" : scaled >= 100 ? scaled.toFixed(1) : scaled >= 10 ? scaled.toFixed(2) : scaled.toFixed(3);
  return `${value < 0 ? "−" : ""}${text} ${unit}`;
}

const nanos = (value) => seconds(value / 1e9);
const change = (value) => (value > 0 ? `+${nanos(value)}` : nanos(value));
const percent = (part, whole) => (part === whole ? "100 %" : `${((100 * part) / whole).toFixed(1)} %`);
const ns = (test) => Math.round(test.elapsed * 1e9);
const sum = (values) => values.reduce((total, value) => total + value, 0);

export async function compare(view, report, expect) {
  const data = JSON.parse(await view.$eval("#run", (element) => element.textContent));
  const page = { view, report, data, expect };
  page.names = data.tests.name.map((file, test) => {
    const [suite, path] = data.dirs[data.tests.dir[test]];
    return `${data.suites[suite]} :: ${path ? `${path}/` : ""}${file}`;
  });
  await head(page);
  await failed(page);
  await directories(page);
  await times(page);
  await workers(page);
  await starts(page);
  await before(page);
  await rows(page);
}

async function head({ view, report, data, expect }) {
  const shown = await view.$$eval(".cards .card", (found) =>
    found.map((card) => [card.lastChild.textContent, card.querySelector("b").textContent, card.dataset.code]));
  const of = (title) => shown.find(([name]) => name === title)?.[1];
  expect("wall time", of("wall time"), seconds(report.elapsed));
  expect("time of all tests", of("time of all tests"), nanos(sum(report.tests.map((test) => ns(test)))));
  const of_code = (code) => count(report.tests.filter((test) => test.code === code).length);
  for (const [, number, code] of shown.filter((card) => card[2] && !["EXCLUDED", "SKIPPED"].includes(card[2]))) {
    expect(`${code} tests`, number, of_code(code));
  }
  const told = await view.$eval("#report header p", (element) => element.textContent);
  const words = `${count(report.tests.length)} tests in ${seconds(report.elapsed)}, ${data.workers} at a time`;
  expect("the headline", told.includes(words), true);
}

async function failed({ view, report, data, expect }) {
  const shown = await view.$$eval("details.failure summary", (found) => found.map((summary) => summary.textContent));
  const failing = new Set(data.codes.filter((code) => code.fail).map((code) => code.name));
  const all = report.tests.filter((test) => failing.has(test.code));
  expect("failures", shown.length, Math.min(100, all.length));
  for (const test of all.slice(0, shown.length)) {
    const words = `${test.code} ${test.name}${test.elapsed === null ? "" : `, ${seconds(test.elapsed)}`}`;
    expect(`a failure '${words}'`, shown.some((text) => text.startsWith(words)), true);
  }
}

// Each area of the uppermost level in sight.
async function directories({ view, report, expect }) {
  const top = (await view.$$eval(".crumbs button", (found) => found.map((crumb) => crumb.textContent))).slice(1);
  const parts = (test) => { const [suite, path] = test.name.split(" :: "); return [suite, ...path.split("/").slice(0, -1)]; };
  const ran = report.tests.filter((test) => test.elapsed !== null && top.every((name, at) => parts(test)[at] === name));
  const whole = sum(ran.map(ns));
  for (const label of await view.$$eval(".map button", (found) => found.map((area) => area.getAttribute("aria-label")))) {
    const name = label.slice(0, label.indexOf(": "));
    const right = name === "(tests right here)" || !ran.some((test) => parts(test).length > top.length);
    const within = ran.filter((test) => parts(test)[top.length] === (right ? undefined : name));
    const time = sum(within.map(ns));
    expect(`${name}: time`, label.startsWith(`${name}: ${nanos(time)}, ${percent(time, whole)}`), true);
    if (!right) expect(`${name}: tests`, label.includes(`, ${count(within.length)} tests`), true);
  }
}

const table = (view, selector) => view.$$eval(selector, (tables) =>
  tables.map((found) => [...found.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent))));

function same(expect, what, found, expected) {
  expect(`${what}: rows`, found?.length ?? 0, expected.length);
  expected.forEach((row, index) => row.forEach((cell, column) => expect(`${what}, row ${index + 1}`, found?.[index]?.[column], cell)));
}

async function times({ view, data, expect }) {
  const [phases, tools] = await table(view, "#time table");
  const whole = sum(data.phases.map(([, ns]) => ns));
  same(expect, "phases", phases, data.phases.map(([name, ns]) => [name, nanos(ns), percent(ns, whole)]));
  const row = ({ name, runs, cpu, wall }) => [name, count(runs), nanos(cpu), nanos(cpu / runs), nanos(wall)];
  same(expect, "tools", tools, data.tools.map(row));
}

// The share of busy time, and the first tests of the first worker as the arrow keys show them.
async function workers({ view, data, names, expect }) {
  const { at, ns, worker, code } = data.tests;
  const ran = names.map((_, test) => test).filter((test) => at[test] !== null && ns[test] !== null);
  if (!ran.length) return;
  const end = ran.reduce((latest, test) => Math.max(latest, at[test] + ns[test]), 0);
  const told = await view.$eval("#workers > div > p:last-child", (element) => element.textContent);
  expect("busy workers", told.includes(` ${percent(sum(ran.map((test) => ns[test])), end * data.workers)} `), true);
  const first = ran.filter((test) => worker[test] === 0).sort((a, b) => at[a] - at[b]).slice(0, 20);
  await view.focus("canvas");
  for (let back = 0; back < 30; back += 1) await view.keyboard.press("ArrowLeft");
  for (const [place, test] of first.entries()) {
    if (place) await view.keyboard.press("ArrowRight");
    const words = `worker 1, ${nanos(at[test])} after the beginning: ${data.codes[code[test]].name} ${names[test]}, ${nanos(ns[test])}`;
    expect("a test of worker 1", await view.textContent("#workers .tip"), words);
  }
}

async function starts({ view, data, expect }) {
  const [shown] = await table(view, "#starts table");
  const why = (tool) => tool.reasons.map(([reason, times]) => `${count(times)}: ${reason}`).join("");
  const row = (tool) => [tool.program, count(tool.resets), count(tool.forks), count(tool.cold), nanos(tool.saved), why(tool)];
  const total = (key) => sum(data.starts.map((tool) => tool[key]));
  const all = ["all", ...["resets", "forks", "cold"].map((key) => count(total(key))), nanos(total("saved")), ""];
  if (data.starts.length) same(expect, "starts", shown, [...data.starts.map(row), all]);
}

async function before({ view, data, names, expect }) {
  const { ns, before: then } = data.tests;
  const known = names.map((_, test) => test).filter((test) => ns[test] !== null && then[test] !== null);
  const [groups, largest] = await table(view, "#before table");
  if (!known.length) return;
  const fails = (test) => data.codes[data.tests.code[test]].fail;
  const number = (now, past) => count(known.filter((test) => fails(test) === now && then[test] < 0 === past).length);
  const fresh = names.filter((_, test) => ns[test] !== null && then[test] === null).length;
  const numbers = [number(true, false), number(false, true), number(true, true), count(fresh)];
  same(expect, "the run before", groups?.map((row) => [row[1]]), numbers.map((value) => [value]));
  const difference = (test) => ns[test] - Math.abs(then[test]);
  const sorted = known.sort((a, b) => Math.abs(difference(b)) - Math.abs(difference(a)) || a - b).slice(0, 20);
  const row = (test) => [names[test], nanos(Math.abs(then[test])), nanos(ns[test]), change(difference(test))];
  same(expect, "largest changes", largest, sorted.map(row));
}

// Every row of the list, page by page.
async function rows({ view, report, data, names, expect }) {
  const byName = new Map(report.tests.map((test) => [test.name, test]));
  const places = new Map(names.map((name, place) => [name, place]));
  const seen = new Set();
  for (let top = 0; top < (report.tests.length + ROWS_AT_ONCE) * ROW && seen.size < report.tests.length; top += ROWS_AT_ONCE * ROW) {
    await view.$eval(".list", (list, to) => { list.scrollTop = to; }, top);
    await view.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const shown = await view.$$eval(".list .row", (found) => found.map((row) => [...row.children].map((cell) => cell.textContent)));
    for (const [code, name, time, past, changed, worker] of shown) {
      const [test, place] = [byName.get(name), places.get(name)];
      if (!test || seen.has(name)) continue;
      seen.add(name);
      const [now, then] = [data.tests.ns[place], data.tests.before[place]];
      expect(`${name}: result`, code, test.code);
      expect(`${name}: time`, time, test.elapsed === null ? "–" : seconds(test.elapsed));
      expect(`${name}: time before`, past, then === null ? "–" : nanos(Math.abs(then)));
      expect(`${name}: change`, changed, now === null || then === null ? "–" : change(now - Math.abs(then)));
      expect(`${name}: worker`, worker, data.tests.worker[place] === null ? "–" : String(data.tests.worker[place] + 1));
    }
  }
  expect("rows that were compared", seen.size, names.filter((name) => byName.has(name)).length);
  console.log(`compared ${seen.size} rows of ${report.tests.length}`);
}
