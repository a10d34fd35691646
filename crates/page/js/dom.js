// Makes elements. Text is always set as text, never parsed as HTML: it comes from tests.

export const el = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
};

// A table in a frame that scrolls where the page is too narrow. Cells are texts or elements.
export const table = (head, rows, { wrap = [], left = [] } = {}) => {
  const place = (index) => (wrap.includes(index) ? "wrap" : left.includes(index) ? "left" : undefined);
  const cell = (tag) => (content, index) => el(tag, { class: place(index), scope: tag === "th" ? "col" : undefined }, content);
  const body = el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell("td")))));
  const whole = el("table", {}, el("thead", {}, el("tr", {}, ...head.map(cell("th")))), body);
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "table" }, whole);
};

export const bar = (share, colour = "var(--c0)") =>
  el("span", { class: "track" }, el("span", { class: "bar", style: `width:${Math.max(0.5, 100 * share).toFixed(2)}%;background:${colour}` }));
