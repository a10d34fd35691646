// Lines, dots and steps over two axes, drawn as SVG at the width that there is. D3's scales choose round ticks.

import { axisBottom, axisLeft } from "d3-axis";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { el } from "./dom.js";
import { ofUnit } from "./format.js";

const COLOURS = 6;
const MARGIN = { top: 12, right: 20, bottom: 46, left: 76 };

const extent = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

const widen = ([low, high]) => (high > low ? [low, high] : [low - 0.5, high + 0.5]);

function scales(spec, width, height) {
  const points = spec.series.flatMap((series) => series.points);
  const x = widen(extent(points.map((point) => point[0])));
  let y = widen(extent(points.map((point) => point[1])));
  if (spec.y.zero) y = [Math.min(0, y[0]), y[1]];
  return {
    x: scaleLinear(x, [MARGIN.left, width - MARGIN.right]).nice(ticks(width, 110)),
    y: scaleLinear(y, [height - MARGIN.bottom, MARGIN.top]).nice(5),
  };
}

// Where all values are whole numbers (threads, runs), so are the ticks.
function across(x, spec, width) {
  const axis = axisBottom(x).ticks(ticks(width, 110));
  const whole = spec.series.every((series) => series.points.every((point) => Number.isInteger(point[0])));
  return whole ? axis.tickValues(x.ticks(ticks(width, 110)).filter(Number.isInteger)) : axis;
}

const ticks = (width, each) => Math.max(2, Math.floor(width / each));

function steps(points, at, ground) {
  const [first, last] = [points[0], points[points.length - 1]];
  const corners = points.flatMap((point, i) => (i ? [[point[0], points[i - 1][1]], point] : [point])).map(at);
  return `M${at(first)[0]},${ground}L${corners.map((p) => p.join(",")).join("L")}L${at(last)[0]},${ground}Z`;
}

function draw(figure, spec) {
  const width = Math.max(300, figure.clientWidth);
  const height = Math.min(340, Math.max(220, width * 0.42));
  const { x, y } = scales(spec, width, height);
  const at = (point) => [x(point[0]).toFixed(1), y(point[1]).toFixed(1)];
  const svg = select(figure).selectAll("svg").data([0]).join((enter) => enter.insert("svg", "figcaption"));
  svg.selectAll("*").remove();
  svg.attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", spec.title);
  svg.append("g").attr("transform", `translate(0,${height - MARGIN.bottom})`)
    .call(across(x, spec, width).tickFormat(ofUnit(spec.x.unit)).tickSizeOuter(0));
  const left = svg.append("g").attr("transform", `translate(${MARGIN.left},0)`)
    .call(axisLeft(y).ticks(5).tickFormat(ofUnit(spec.y.unit)).tickSize(-(width - MARGIN.left - MARGIN.right)));
  left.select(".domain").remove();
  svg.append("text").attr("x", (MARGIN.left + width - MARGIN.right) / 2).attr("y", height - 6).attr("text-anchor", "middle")
    .text(spec.x.label);
  spec.series.forEach((series, index) => {
    const group = svg.append("g").attr("class", `c${index % COLOURS}`);
    if (series.mark === "steps") {
      group.append("path").attr("class", "area").attr("d", steps(series.points, at, height - MARGIN.bottom));
      return;
    }
    if (series.mark === "line") group.append("polyline").attr("class", "line").attr("points", series.points.map(at).join(" "));
    group.selectAll("circle").data(series.points).join("circle").attr("class", "dot").attr("r", 2.5)
      .attr("cx", (point) => at(point)[0]).attr("cy", (point) => at(point)[1])
      .append("title").text((point) => `${series.name}: ${ofUnit(spec.x.unit)(point[0])}, ${ofUnit(spec.y.unit)(point[1])}`);
  });
}

// Draws the plot that a figure's script element describes, and again when the figure's width changes.
export function plot(figure) {
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const keys = spec.series.map((series, index) => el("span", { class: "key" }, el("span", { class: `c${index % COLOURS}` }, "■ "), series.name));
  figure.append(el("figcaption", {}, ...keys));
  let width = 0;
  new ResizeObserver(() => {
    if (Math.abs(figure.clientWidth - width) > 1) draw(figure, spec, (width = figure.clientWidth));
  }).observe(figure);
}
