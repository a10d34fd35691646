// What every page runs: its plots, and the whole content of a page that carries a test run.

import { plot } from "./plot.js";
import { report } from "./run/report.js";

for (const figure of document.querySelectorAll("figure[data-plot]")) plot(figure);
const run = document.getElementById("run");
if (run) report(JSON.parse(run.textContent), document.getElementById("report"));
