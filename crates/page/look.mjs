// Opens a page in Chromium as a reader would: takes pictures at two widths, light and dark, measures how long it takes to open, and has
// figures.mjs compare every figure that it shows of a run with the JSON report of the same run. Run by tools/page-look.
//
//   node look.mjs CHROMIUM PAGE PICTURES [JSON]

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { compare } from "./figures.mjs";

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
    if (width === WIDTHS[0] && colorScheme === "light" && json) await compare(view, JSON.parse(readFileSync(json, "utf8")), expect);
    await context.close();
  }
}
await browser.close();
failures.forEach((failure) => console.log(`page-look: ${failure}`));
console.log(failures.length ? `page-look: ${failures.length} failures` : "page-look: every figure agrees");
process.exitCode = failures.length ? 1 : 0;

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
