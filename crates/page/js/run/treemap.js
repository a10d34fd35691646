// Time by directory: an area for each, as large as its tests took together. A click goes into a directory; its last level shows the
// directory's tests in the list. D3's squarified treemap lays it out.

import { hierarchy, treemap as layout, treemapSquarify } from "d3-hierarchy";
import { el } from "../dom.js";
import { count, nanos, percent } from "../format.js";

// A tree of suites and directories with the time and number of the tests right in each.
function tree(run) {
  const root = { name: "all", below: new Map(), ns: 0, tests: 0, failed: 0, parent: null };
  const nodes = run.dirs.map(([suite, path]) => {
    let node = root;
    for (const name of [run.suites[suite], ...path.split("/").filter(Boolean)]) {
      if (!node.below.has(name)) node.below.set(name, { name, below: new Map(), ns: 0, tests: 0, failed: 0, parent: node });
      node = node.below.get(name);
    }
    return node;
  });
  run.all().forEach((test) => {
    if (run.nanos(test) === null) return;
    const leaf = nodes[run.tests.dir[test]];
    leaf.own = (leaf.own ?? 0) + run.nanos(test);
    for (let node = leaf; node; node = node.parent) {
      node.ns += run.nanos(test);
      node.tests += 1;
      node.failed += run.code(test).fail ? 1 : 0;
    }
  });
  return { root, nodes };
}

const path = (node) => (node.parent ? [...path(node.parent), node] : [node]);

const within = (node, top) => {
  for (let at = node; at; at = at.parent) if (at === top) return true;
  return false;
};

// From blue to orange by time per test, compared with the slowest directory in sight.
const shade = (share) => `color-mix(in oklab, #1f5fae, #b4521c ${(100 * share).toFixed(0)}%)`;

export function treemap(run, showDirectory) {
  const { root, nodes } = tree(run);
  if (!root.ns) return el("p", {}, "No test ran.");
  const map = el("div", { class: "map", role: "group", "aria-label": "time by directory" });
  const crumbs = el("p", { class: "crumbs" });
  let top = root;
  while (top.below.size === 1 && !top.own) [top] = top.below.values();

  function children(node) {
    const below = [...node.below.values()].filter((child) => child.ns > 0);
    return node.own && below.length ? [...below, { name: "(tests right here)", ns: node.own, below: new Map(), only: node }] : below;
  }

  function go(node) {
    top = node;
    draw();
    map.querySelector("button")?.focus();
  }

  function open(node) {
    if (node.below.size) return go(node);
    const place = node.only ?? node;
    const direct = Boolean(node.only);
    const test = (index) => (direct ? nodes[run.tests.dir[index]] === place : within(nodes[run.tests.dir[index]], place));
    return showDirectory(test, path(place).slice(1).map((part) => part.name).join("/"));
  }

  function draw() {
    const [width, height] = [map.clientWidth, map.clientHeight];
    if (!width) return;
    const parts = children(top);
    const data = { children: parts.length ? parts : [top] };
    const each = (node) => (node.tests ? node.ns / node.tests : 0);
    const [fastest, slowest] = [Math.min(...data.children.map(each)), Math.max(...data.children.map(each))];
    const tint = (value) => (slowest > 1.2 * fastest ? (value - fastest) / (slowest - fastest) : 0);
    const whole = hierarchy(data, (node) => node.children).sum((node) => (node.children ? 0 : node.ns)).sort((a, b) => b.value - a.value);
    layout().size([width, height]).tile(treemapSquarify).padding(1)(whole);
    map.replaceChildren(...whole.leaves().map((leaf) => cell(leaf, tint(each(leaf.data)))));
    const crumb = (node) => el("button", { type: "button", onclick: () => go(node) }, node.name);
    crumbs.replaceChildren(...path(top).flatMap((node, index) => (index ? [" / ", crumb(node)] : [crumb(node)])),
      ` · ${nanos(top.ns)} in ${count(top.tests)} tests`);
  }

  function cell(leaf, share) {
    const { data: node, x0, y0, x1, y1 } = leaf;
    const told = `${node.name}: ${nanos(node.ns)}, ${percent(node.ns, top.ns)}${node.tests ? `, ${count(node.tests)} tests` : ""}${node.failed ? `, ${count(node.failed)} failed` : ""}`;
    const [width, height] = [x1 - x0, y1 - y0];
    const text = width > 50 && height > 22 ? [el("b", {}, node.name), height > 40 ? el("span", {}, nanos(node.ns)) : null] : [];
    return el("button", { type: "button", title: told, "aria-label": told, onclick: () => open(node),
      style: `left:${x0}px;top:${y0}px;width:${width}px;height:${height}px;background:${shade(share)}` }, ...text);
  }

  map.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && top.parent) go(top.parent);
  });
  let width = 0;
  new ResizeObserver(() => {
    if (Math.abs(map.clientWidth - width) > 1) { width = map.clientWidth; draw(); }
  }).observe(map);
  return el("div", {}, crumbs, map, el("p", { class: "soft" },
    "An area is the time of a directory's tests; orange ones take longer per test than blue ones. Enter or a click goes in, Escape goes out."));
}
