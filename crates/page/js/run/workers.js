// Which worker ran which test when. A canvas, as 50,000 elements would take seconds; its axis is D3's. Keys move from test to test.

import { axisBottom } from "d3-axis";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { el } from "../dom.js";
import { nanos, ofUnit, percent } from "../format.js";
import { tone } from "./model.js";

const LEFT = 62;
const RIGHT = 16;

export function workers(run) {
  const lanes = Array.from({ length: run.workers }, () => []);
  for (const test of run.all()) if (run.tests.at[test] !== null && run.nanos(test) !== null) lanes[run.tests.worker[test]]?.push(test);
  lanes.forEach((lane) => lane.sort((a, b) => run.tests.at[a] - run.tests.at[b]));
  if (!lanes.some((lane) => lane.length)) return el("p", {}, "No test ran.");
  const end = Math.max(...lanes.flatMap((lane) => (lane.length ? [run.tests.at[lane.at(-1)] + run.nanos(lane.at(-1))] : [])));
  const height = Math.max(8, Math.min(34, 420 / lanes.length));
  const canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "workers over time; arrow keys move from test to test" });
  const tip = el("p", { class: "tip soft", role: "status" }, "Point at a test, or move with the arrow keys.");
  const figure = el("figure", {}, canvas);
  let at = { lane: 0, place: -1 };
  let x = scaleLinear([0, end / 1e9], [LEFT, LEFT + 1]);

  function draw() {
    const width = figure.clientWidth;
    if (!width) return;
    const ratio = window.devicePixelRatio || 1;
    x = scaleLinear([0, end / 1e9], [LEFT, width - RIGHT]);
    canvas.width = width * ratio;
    canvas.height = lanes.length * height * ratio;
    canvas.style.height = `${lanes.length * height}px`;
    const to = canvas.getContext("2d");
    to.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    const tones = { good: colour("c0"), bad: colour("bad"), odd: colour("odd"), none: colour("none") };
    to.font = "12px system-ui, sans-serif";
    lanes.forEach((lane, index) => {
      to.fillStyle = colour("soft");
      if (height >= 12) to.fillText(`worker ${index + 1}`, 2, (index + 0.5) * height + 4);
      to.fillStyle = colour("raised");
      to.fillRect(LEFT, index * height + 1, width - LEFT - RIGHT, height - 2);
      lane.forEach((test, place) => {
        const [from, until] = ends(test);
        const chosen = index === at.lane && place === at.place;
        to.fillStyle = chosen ? colour("c1") : tones[tone(run.code(test))];
        to.globalAlpha = chosen || place % 2 ? 1 : 0.72;
        to.fillRect(from, index * height + 1, Math.max(chosen ? 2 : 0.4, until - from), height - 2);
      });
      to.globalAlpha = 1;
    });
    const svg = select(figure).selectAll("svg").data([0]).join("svg").attr("viewBox", `0 0 ${width} 40`).attr("aria-hidden", "true");
    svg.selectAll("*").remove();
    svg.append("g").attr("transform", "translate(0,2)")
      .call(axisBottom(x).ticks(Math.max(2, Math.floor(width / 110))).tickFormat(ofUnit("s")).tickSizeOuter(0));
    svg.append("text").attr("x", width / 2).attr("y", 36).attr("text-anchor", "middle").text("time since the first test began");
  }

  const ends = (test) => [x(run.tests.at[test] / 1e9), x((run.tests.at[test] + run.nanos(test)) / 1e9)];

  function choose(lane, place) {
    if (!lanes[lane]?.[place] && lanes[lane]?.[place] !== 0) return;
    at = { lane, place };
    const test = lanes[lane][place];
    tip.textContent = `worker ${lane + 1}, ${nanos(run.tests.at[test])} after the beginning: ${run.code(test).name} ${run.name(test)}, ${nanos(run.nanos(test))}`;
    requestAnimationFrame(draw);
  }

  canvas.addEventListener("mousemove", (event) => {
    const lane = Math.min(lanes.length - 1, Math.max(0, Math.floor(event.offsetY / height)));
    const place = lanes[lane].findLastIndex((test) => ends(test)[0] <= event.offsetX + 1);
    if (place >= 0 && (lane !== at.lane || place !== at.place)) choose(lane, place);
  });
  canvas.addEventListener("keydown", (event) => {
    const [across, down] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key] ?? [0, 0];
    if (!across && !down) return;
    event.preventDefault();
    const lane = Math.min(lanes.length - 1, Math.max(0, at.lane + down));
    choose(lane, Math.min(lanes[lane].length - 1, Math.max(0, at.place + across)));
  });
  let width = 0;
  new ResizeObserver(() => {
    if (Math.abs(figure.clientWidth - width) > 1) { width = figure.clientWidth; draw(); }
  }).observe(figure);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  const busy = lanes.reduce((sum, lane) => sum + lane.reduce((all, test) => all + run.nanos(test), 0), 0);
  return el("div", {}, figure, tip, el("p", { class: "soft" },
    `Workers ran tests for ${percent(busy, end * lanes.length)} of the time between the first test's beginning and the last one's end.`));
}
