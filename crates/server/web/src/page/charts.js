"use strict";
// Charts of the page. Every chart has a text with the same figures for readers of screens.
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Lines over time: `lines` are lists of numbers with a name each, `show` writes a number. */
function drawLines(svg, lines, seconds, title, show) {
  const width = Math.max(200, svg.clientWidth), height = svg.clientHeight || 112, top = Math.max(1e-9, ...lines.flatMap(line => line.values));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const drawn = lines.map(({ values }, index) => {
    const step = width / Math.max(1, seconds - 1), from = width - (values.length - 1) * step;
    const points = values.map((value, at) => `${(from + at * step).toFixed(1)} ${(height - 4 - (height - 22) * value / top).toFixed(1)}`);
    return element("path", { class: "s" + index, d: points.length ? "M" + points.join("L") : "" });
  });
  const base = element("line", { x1: 0, x2: width, y1: height - 2, y2: height - 2 });
  svg.replaceChildren(base, ...drawn, element("text", { x: 2, y: 11 }, "highest " + show(top)));
  const now = lines.map(({ name, values }) => `${name} ${show(values.at(-1) ?? 0)}`).join(", ");
  svg.setAttribute("aria-label", `${title}: ${now}; highest ${show(top)}`);
}

/** The span that can be restored, with the last checkpoint, up to now. Times are Unix seconds. */
function drawSpan(svg, since, checkpoint, now) {
  const width = Math.max(200, svg.clientWidth), height = 40, clock = time => new Date(time * 1000).toLocaleTimeString();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const length = Math.max(1, now - since), x = time => Math.max(0, Math.min(width, (time - since) / length * width));
  const parts = [element("rect", { x: 0, y: 6, width, height: 10, rx: 3, fill: "var(--two)" }),
    element("text", { x: 0, y: 32 }, "since " + clock(since)), element("text", { x: width, y: 32, "text-anchor": "end" }, "now")];
  if (checkpoint >= since) {
    parts.push(element("rect", { x: Math.min(width - 4, x(checkpoint)), y: 1, width: 4, height: 20, fill: "var(--accent)" }));
  }
  svg.replaceChildren(...parts);
  svg.setAttribute("aria-label", `Restorable from ${clock(since)} to now; last checkpoint at ${clock(checkpoint)}`);
}

/** Rectangles in a box of 100 by 100 with areas in proportion: squarified (Bruls, Huizing, van Wijk 2000). */
function squarify(areas, aspect) {
  const total = areas.reduce((sum, area) => sum + area, 0), box = { x: 0, y: 0, width: 100 * aspect, height: 100 }, placed = [];
  const scaled = areas.map(area => area / total * box.width * box.height);
  const worst = (row, sum, side) => Math.max(...row.map(area => Math.max(side * side * area / (sum * sum), sum * sum / (side * side * area))));
  let row = [], sum = 0;
  const place = () => {
    const isTall = box.width >= box.height, side = isTall ? box.height : box.width, depth = sum / side;
    let at = 0;
    for (const area of row) {
      const length = area / depth;
      placed.push(isTall ? { x: box.x, y: box.y + at, width: depth, height: length } : { x: box.x + at, y: box.y, width: length, height: depth });
      at += length;
    }
    if (isTall) { box.x += depth; box.width -= depth; } else { box.y += depth; box.height -= depth; }
    row = []; sum = 0;
  };
  for (const area of scaled) {
    const side = Math.min(box.width, box.height);
    if (row.length && worst([...row, area], sum + area, side) > worst(row, sum, side)) place();
    row.push(area); sum += area;
  }
  if (row.length) place();
  return placed.map(({ x, y, width, height }) => ({ x: x / aspect, y, width: width / aspect, height }));
}
