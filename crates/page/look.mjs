// Opens a page in Chromium as a reader would: takes pictures at two widths, light and dark, measures how long it takes to open, and
// compares every figure that it shows of a run with lit's JSON report of the same run. Run by tools/page-look.
//
//   node look.mjs CHROMIUM PAGE PICTURES [JSON]

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [program, page, pictures, json] = process.argv.slice(2);
const WIDTHS = [1280, 420];
const failures = [];
const expect = (what, found, expected) => {
  if (found !== expected) failures.push(`${what}: ${found}, not ${expected}`);
};

const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
for (const width of WIDTHS) {
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    const view = await context.newPage();
    view.on("pageerror", (error) => failures.push(`${width} ${colorScheme}: ${error}`));
    view.on("request", (request) => {
      if (!request.url().startsWith("file:") || request.isNavigationRequest() === false) failures.push(`it loads ${request.url()}`);
    });
    const begun = performance.now();
    await view.goto(pathToFileURL(page).href);
    await view.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    console.log(`${width} ${colorScheme}: opened in ${Math.round(performance.now() - begun)} ms`);
    const wide = await view.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(`${width}: sideways scrolling`, wide, 0);
    await view.screenshot({ path: `${pictures}/${width}-${colorScheme}.png`, fullPage: true });
    if (width === WIDTHS[0] && colorScheme === "light" && (await view.$(".list"))) await keys(view);
    if (width === WIDTHS[0] && colorScheme === "light" && json) await compare(view, JSON.parse(readFileSync(json, "utf8")));
    await context.close();
  }
}
await browser.close();
failures.forEach((failure) => console.log(`page-look: ${failure}`));
console.log(failures.length ? `page-look: ${failures.length} failures` : "page-look: every figure agrees");
process.exitCode = failures.length ? 1 : 0;

// The unit in which the page words a time, from seconds; written again here, since it is what is tested.
function seconds(value) {
  const [scale, unit] = value >= 1 || value === 0 ? [1, "s"] : value >= 1e-3 ? [1e3, "ms"] : value >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  const scaled = value * scale;
  const text = scaled === 0 ? "0" : scaled >= 100 ? scaled.toFixed(1) : scaled >= 10 ? scaled.toFixed(2) : scaled.toFixed(3);
  return `${text} ${unit}`;
}

// Everything that a pointer can do, by keys.
async function keys(view) {
  const focused = (selector) => view.evaluate((wanted) => document.activeElement.matches(wanted), selector);
  await view.keyboard.press("/");
  expect("`/` goes to the filter", await focused("input[type=search]"), true);
  await view.focus(".list");
  await view.keyboard.press("End");
  await view.keyboard.press("ArrowUp");
  const last = await view.$eval(".list .row[aria-selected=true]", (row) => row.children[1].textContent);
  expect("arrow keys select", (await view.textContent(".panel")).includes(last), true);
  if (await view.$(".map button")) {
    await view.focus(".map button");
    const told = await view.textContent(".tools [role=status]");
    for (let level = 0; level < 8 && (await focused(".map button")); level += 1) await view.keyboard.press("Enter");
    const [shown, all] = (await view.textContent(".tools [role=status]")).split(" of ");
    expect("Enter goes to a directory's tests", parseInt(shown.replace(/,/g, ""), 10) <= parseInt(all.replace(/,/g, ""), 10), true);
    if (told !== `${shown} of ${all}`) await view.click(".tools button");
  }
  await view.focus("canvas");
  await view.keyboard.press("ArrowRight");
  expect("arrow keys move along a worker", /^worker \d+, /.test(await view.textContent(".tip")), true);
}

async function compare(view, report) {
  const cards = await view.$$eval(".cards .card", (found) => found.map((card) => [card.lastChild.textContent, card.querySelector("b").textContent, card.dataset.code]));
  const of = (title) => cards.find(([name]) => name === title)?.[1];
  expect("wall time", of("wall time"), seconds(report.elapsed));
  const total = report.tests.reduce((sum, test) => sum + (test.elapsed ?? 0), 0);
  expect("time of all tests", of("time of all tests"), seconds(total));
  for (const [, shown, code] of cards.filter((card) => card[2] && !["EXCLUDED", "SKIPPED"].includes(card[2]))) {
    expect(`${code} tests`, shown, report.tests.filter((test) => test.code === code).length.toLocaleString("en-US"));
  }
  const failed = await view.$$eval("details.failure summary", (found) => found.map((summary) => summary.textContent));
  const failing = new Set(await view.$$eval("#run", ([data]) => JSON.parse(data.textContent).codes.filter((code) => code.fail).map((code) => code.name)));
  const expected = report.tests.filter((test) => failing.has(test.code)).slice(0, failed.length);
  expect("failures", failed.length, Math.min(100, report.tests.filter((test) => failing.has(test.code)).length));
  for (const test of expected) {
    const words = `${test.code} ${test.name}${test.elapsed === null ? "" : `, ${seconds(test.elapsed)}`}`;
    if (!failed.some((text) => text.startsWith(words))) failures.push(`no failure '${words}'`);
  }
  await rows(view, report);
}

// Every row of the list, page by page.
async function rows(view, report) {
  const byName = new Map(report.tests.map((test) => [test.name, test]));
  const seen = new Set();
  const step = 12 * 28;
  for (let top = 0; seen.size < report.tests.length && top < (report.tests.length + 20) * 28; top += step) {
    await view.$eval(".list", (list, to) => { list.scrollTop = to; }, top);
    await view.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const shown = await view.$$eval(".list .row", (found) => found.map((row) => [...row.children].map((cell) => cell.textContent)));
    for (const [code, name, time] of shown) {
      const test = byName.get(name);
      if (!test) continue;
      seen.add(name);
      expect(`${name}: result`, code, test.code);
      expect(`${name}: time`, time, test.elapsed === null ? "–" : seconds(test.elapsed));
    }
    if (top > 400 * step) break;
  }
  console.log(`compared ${seen.size} rows of ${report.tests.length}`);
}
