"use strict";
// The profile is a table; everything below looks things up in it. State: ranges of statistics, values of
// parameters, two axes, and a row that was clicked (or none). The state is kept in the address, after #.
const data = JSON.parse(document.getElementById("data").textContent);
const rows = data.scores.length, P = data.statistics.length;
const column = data.statistics.map((_, p) => data.tallies.map((tally) => tally[p]));
const ends = column.map((values) => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]));
const state = {
  ranges: ends.map(([low, high]) => [low, high]),
  values: Object.fromEntries(data.parameters.map((p) => [p.name, p.value])),
  axes: [0, Math.min(1, P - 1)], picked: null,
};

// --- formulas: postfix instructions over doubles ------------------------------------------------------------
const ops = {
  "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b,
  "**": (a, b) => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : Math.pow(a, b)), // IEEE 754
  "negate": (a) => -a, "<": (a, b) => a < b, "<=": (a, b) => a <= b,
  ">": (a, b) => a > b, ">=": (a, b) => a >= b, "==": (a, b) => a === b, "!=": (a, b) => a !== b,
  "and": (a, b) => a && b, "or": (a, b) => a || b, "not": (a) => !a, "min": Math.min, "max": Math.max,
  "abs": Math.abs, "exp": Math.exp, "log": Math.log, "where": (c, a, b) => (c ? a : b),
};
const arity = (name) => (name === "where" ? 3 : ["negate", "not", "abs", "exp", "log"].includes(name) ? 1 : 2);
function execute(code, names) {
  const stack = [];
  for (const [operation, argument] of code) {
    if (operation === "number") stack.push(argument === "inf" ? Infinity : argument);
    else if (operation === "name") stack.push(names[argument]);
    else stack.push(ops[operation](...stack.splice(-arity(operation))));
  }
  return stack[0];
}
const parameters = () => Object.assign(Object.create(null), state.values);
function named(row, names) { // what formulas can refer to: the same object for all rows
  names.score = data.scores[row];
  for (let p = 0; p < P; p++) names[data.statistics[p]] = data.tallies[row][p];
  return names;
}
function evaluated() {
  const values = new Float64Array(rows), allowed = new Uint8Array(rows), names = parameters();
  let best = -1, broken = -1;
  for (let row = 0; row < rows; row++) {
    named(row, names);
    values[row] = data.objective ? Number(execute(data.objective.code, names)) : data.scores[row];
    const inside = state.ranges.every(([low, high], p) => low <= data.tallies[row][p] && data.tallies[row][p] <= high);
    const holds = inside && (!data.where || execute(data.where.code, names));
    if (!(values[row] < Infinity)) { values[row] = -Infinity; if (holds) broken = row; }
    allowed[row] = holds && values[row] > -Infinity;
    if (allowed[row] && (best < 0 || values[row] > values[best])) best = row;
  }
  const falling = data.objective ? decrease(best) : "";
  return { values, allowed, best: falling ? -1 : best, broken, falling };
}
// The rows have the best scores, so they have the best values only if the objective does not decrease in the
// score. This is checked as in Python (answers/objective.py): at lower scores, some of which occur.
const steps = [0, 0.001, 0.13, 1, 0.06, 2.1, 5.3], above = [0, 0, 1, 2, 0, 4, 5], inside = 3, most_checked = 2000;
function decrease(best) { // where the objective decreases, in words; empty if it does not
  const [lowest, highest] = spread(data.scores), range = highest - lowest, stride = Math.ceil(rows / most_checked), names = parameters();
  for (let at = 0; at < rows + stride; at += stride) {
    const row = at < rows ? at : Math.max(best, 0), own = data.scores[row];
    named(row, names);
    const points = steps.map((step, i) => {
      const point = own - step * (range || Math.abs(own) || 1);
      return range && 1 <= i && i <= inside ? Math.max(point, lowest) : point;
    });
    const values = points.map((score) => Number(execute(data.objective.code, Object.assign(names, { score }))));
    for (let i = 1; i < steps.length; i++) {
      const lower = values[i], upper = values[above[i]], finite = [lower, upper].filter(Number.isFinite).map(Math.abs);
      const rounding = 1e-9 * Math.max(0, ...finite) + 8 * Number.EPSILON * Math.abs(points[above[i]]);
      if (lower > upper && lower - upper > rounding) {
        const tally = data.statistics.map((name, p) => `${name} = ${data.tallies[row][p]}`).join(", ");
        return `${tally && `at ${tally} `}it is ${shown(lower)} for a score of ${shown(points[i])}, and ${shown(upper)} for ${shown(points[above[i]])}`;
      }
    }
  }
  return "";
}

// --- small things -------------------------------------------------------------------------------------------
const $ = (id) => document.getElementById(id);
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in node && key !== "list") node[key] = value; else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}
function svg(tag, attributes = {}, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
}
const shown = (number) => (Math.abs(number) < 1e15 ? String(Number(number.toPrecision(6))) : number.toExponential(3));
function ramp(t) { // from deep blue over green to yellow
  const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
  return `rgb(${stops[i].map((c, k) => Math.round(c + (at - i) * (stops[i + 1][k] - c))).join(",")})`;
}
function spread(items) {
  return items.reduce(([a, b], v) => (Number.isFinite(v) ? [Math.min(a, v), Math.max(b, v)] : [a, b]), [Infinity, -Infinity]);
}
function ticks(low, high, most) {
  const raw = Math.max((high - low) / most, 1e-12), scale = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].find((m) => m * scale >= raw) * scale, list = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step) list.push(v);
  return list;
}

// --- the picture --------------------------------------------------------------------------------------------
const W = innerWidth < 500 ? 400 : 640, H = 340, most = Math.round(W / 53), pad = { left: 58, right: 16, top: 24, bottom: 40 };
const inner = (low, high, from, to) => (v) => from + ((v - low) / (high - low || 1)) * (to - from);
function frame(x, y, xs, ys, xName, yName) {
  const root = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
  for (const v of xs) root.append(svg("text", { x: x(v), y: H - pad.bottom + 18, "text-anchor": "middle" }, shown(v)));
  for (const v of ys) {
    root.append(svg("line", { class: "axis", x1: pad.left, x2: W - pad.right, y1: y(v), y2: y(v) }));
    root.append(svg("text", { x: pad.left - 8, y: y(v) + 4, "text-anchor": "end" }, shown(v)));
  }
  root.append(svg("text", { x: (pad.left + W - pad.right) / 2, y: H - 5, "text-anchor": "middle" }, xName));
  root.append(svg("text", { x: 14, y: 14, transform: `rotate(-90 14 14)`, "text-anchor": "end" }, yName));
  return root;
}
function curve(result) {
  const p = state.axes[0], cells = projected(result, [p]), [low, high] = spread(cells.map((row) => result.values[row]));
  const x = inner(...ends[p], pad.left + 8, W - pad.right - 8), y = inner(low, high, H - pad.bottom - 8, pad.top + 8);
  const whole = ticks(...ends[p], most).filter(Number.isInteger);
  const root = frame(x, y, whole, ticks(low, high, 8), data.statistics[p], data.objective ? "value" : "score");
  const finite = cells.filter((row) => result.values[row] > -Infinity);
  const place = (row) => [x(data.tallies[row][p]), y(result.values[row])];
  root.append(svg("path", { class: "curve", d: finite.map((row, i) => `${i ? "L" : "M"}${place(row).join(" ")}`).join("") }));
  const r = Math.min(Math.max(0.4 * (x(1) - x(0)), 2), 4.5); // dots that do not merge, but do not disappear either
  for (const row of finite) {
    const [cx, cy] = place(row), dot = svg("circle", { class: result.allowed[row] ? "dot" : "dot out", cx, cy, r });
    dot.append(svg("title", {}, told(row, result)));
    root.append(dot);
  }
  pickable(root, finite, place);
  mark(root, result, place, 9, []);
  return root;
}
function pickable(root, found, place) { // a click picks the nearest point, however far
  root.addEventListener("click", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(root.getScreenCTM().inverse());
    const far = (row) => { const [cx, cy] = place(row); return Math.hypot(cx - at.x, cy - at.y); };
    if (found.length) pick(found.reduce((near, row) => (far(row) < far(near) ? row : near)));
  });
}
function heat(result) {
  const [p, q] = state.axes, cells = projected(result, [p, q]), [low, high] = spread(cells.map((row) => result.values[row]));
  const x = inner(ends[p][0] - 0.5, ends[p][1] + 0.5, pad.left, W - pad.right);
  const y = inner(ends[q][0] - 0.5, ends[q][1] + 0.5, H - pad.bottom, pad.top);
  const whole = (k, count) => ticks(...ends[k], count).filter(Number.isInteger);
  const root = frame(x, y, whole(p, most), whole(q, 8), data.statistics[p], data.statistics[q]);
  const width = x(1) - x(0), height = y(0) - y(1);
  for (const row of cells) {
    const value = result.values[row], t = high > low ? (value - low) / (high - low) : 1;
    const cell = svg("rect", { x: x(data.tallies[row][p] - 0.5), y: y(data.tallies[row][q] + 0.5), width: Math.max(width - 0.7, 0.5),
      height: Math.max(height - 0.7, 0.5), fill: value > -Infinity ? ramp(t) : "none", opacity: result.allowed[row] ? 1 : 0.22, cursor: "pointer" });
    cell.append(svg("title", {}, told(row, result)));
    root.append(cell);
  }
  const place = (row) => [x(data.tallies[row][p]), y(data.tallies[row][q])];
  pickable(root, cells, place);
  mark(root, result, place, Math.max(6, Math.min(width, height) / 2), ["halo"]);
  legend(root, low, high);
  return root;
}
function legend(root, low, high) { // the scale of colours, above the upper right corner of the picture
  const parts = 24, width = 4, start = W - pad.right - parts * width;
  for (let i = 0; i < parts; i++) root.append(svg("rect", { x: start + i * width, y: 4, width, height: 8, fill: ramp(i / (parts - 1)) }));
  root.append(svg("text", { x: start - 6, y: 13, "text-anchor": "end" }, `${data.objective ? "value" : "score"} ${shown(low)} to ${shown(high)}`));
}
function mark(root, result, place, r, behind) {
  for (const [row, name] of [[state.picked, "picked"], [result.best, "ring"]]) {
    if (row === null || row < 0 || !(result.values[row] > -Infinity)) continue;
    const [cx, cy] = place(row);
    for (const each of [...behind, name]) root.append(svg("circle", { class: each, cx, cy, r, "pointer-events": "none" }));
  }
}
function projected(result, axes) { // of all rows with the same place in the picture the best, allowed ones first
  const best = new Map();
  for (let row = 0; row < rows; row++) {
    const key = axes.map((p) => data.tallies[row][p]).join(), other = best.get(key);
    const better = other === undefined || result.allowed[row] > result.allowed[other]
      || (result.allowed[row] === result.allowed[other] && result.values[row] > result.values[other]);
    if (better) best.set(key, row);
  }
  return [...best.values()].sort((a, b) => a - b);
}
function told(row, result) {
  const tally = data.statistics.map((name, p) => `${name} = ${data.tallies[row][p]}`).join(", ");
  return `${tally}: ${data.objective ? `value ${shown(result.values[row])}, ` : ""}score ${shown(data.scores[row])}`;
}

// --- the labelling ------------------------------------------------------------------------------------------
function codes(row) {
  const text = data.labellings[row];
  return data.digits ? [...text].map((digit) => data.digits.indexOf(digit)) : text;
}
const statesOf = (v) => data.states[data.states.length === 1 ? 0 : v];
const plain = data.scores.reduce((best, score, row) => (score > data.scores[best] ? row : best), 0);
function answer(result) {
  const row = state.picked !== null ? state.picked : result.best, box = $("answer");
  box.replaceChildren();
  $("labelling").replaceChildren();
  $("states").replaceChildren();
  $("outlined").hidden = true;
  const none = result.falling ? `The objective decreases in the score: ${result.falling}. So the best labelling is not known here; `
    + "choose other parameters." : row < 0 ? `no labelling ${data.where ? `in these ranges satisfies ${data.where.text}` : "is in these ranges"}` : "";
  if (none) box.append(make("span", { className: "none", textContent: none }));
  if (row < 0) return;
  if (data.objective) box.append(make("span", {}, "value ", make("b", { id: "value", textContent: shown(result.values[row]) })));
  box.append(make("span", {}, "score ", make("b", { id: "score", textContent: shown(data.scores[row]) })));
  data.statistics.forEach((name, p) => box.append(make("span", {}, `${name} `, make("b", { textContent: String(data.tallies[row][p]) }))));
  if (state.picked !== null) box.append(make("button", { textContent: "show the optimum", onclick: () => pick(null) }));
  if (result.broken >= 0) box.append(make("span", { className: "none", textContent: `the objective is nan or inf at ${told(result.broken, result)}` }));
  draw(codes(row), codes(plain));
}
function draw(labelling, usual) {
  const box = $("labelling"), grid = data.shape.length === 2;
  box.className = grid ? "grid" : "";
  const small = sized(box, grid);
  box.classList.toggle("small", small);
  labelling.forEach((code, v) => {
    const name = data.variables ? data.variables[v] : grid ? "" : String(v), label = statesOf(v)[code];
    const cell = make("div", { className: code === usual[v] ? "cell" : "cell changed", title: `${name} ${label}` }, label);
    cell.style.background = data.colours[code];
    if (name) cell.prepend(make("small", { textContent: name }));
    box.append(cell);
  });
  $("outlined").hidden = labelling.every((code, v) => code === usual[v]);
  $("outlined").textContent = `${small ? "A dot" : "An outline"} marks differences from the labelling with the highest score.`;
  $("states").replaceChildren(...(small ? key([...new Set(labelling)].sort((a, b) => a - b)) : []));
}
function widest() { // the width of the longest label or name, so that all labellings have the same columns
  const pen = document.createElement("canvas").getContext("2d"), style = getComputedStyle(document.body);
  const size = parseFloat(style.fontSize);
  const width = (texts, share) => {
    pen.font = `${share * size}px ${style.fontFamily}`;
    return texts.reduce((most, text) => Math.max(most, pen.measureText(text).width), 0);
  };
  return Math.ceil(Math.max(width(data.states.flat(), 1), width(data.variables || [String(data.shape[0] - 1)], 0.73)));
}
const longest = widest();
function sized(box, grid) { // make columns as wide as there is room; return whether labels are too long for them
  const { style } = box;
  style.maxWidth = "";
  if (!grid) {
    style.gridTemplateColumns = `repeat(auto-fill, min(100%, ${Math.max(longest + 12, 26)}px))`;
    return false;
  }
  const [, columns] = data.shape, text = longest + 8, room = box.clientWidth / columns - 1, small = room < text;
  const width = Math.max(small ? 26 : text, 20);
  style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  style.gridAutoRows = small ? `${Math.min(room + 1, width)}px` : ""; // heights of single cells would be rounded apart
  style.maxWidth = `${Math.ceil(columns * width)}px`;
  return small;
}
function key(found) { // what the colours stand for, where cells are too small to say so
  return data.states.length > 1 || found.length > 12 ? [] : found.map((code) => {
    const patch = make("i");
    patch.style.background = data.colours[code];
    return make("span", {}, patch, statesOf(0)[code]);
  });
}
function pick(row) { state.picked = row; render(); }

// --- the controls -------------------------------------------------------------------------------------------
function slider(id, name, low, high, step, read, write) {
  const range = make("input", { type: "range", min: low, max: high, step, value: read(), id });
  const field = make("input", { type: "number", min: low, max: high, step: "any", value: read(), id: `${id}-number`, "aria-label": name });
  const set = (text) => {
    if (text === "" || !Number.isFinite(Number(text))) return;
    write(Math.min(Math.max(Number(text), low), high));
    range.value = field.value = read();
    state.picked = null;
    render();
  };
  range.addEventListener("input", () => set(range.value));
  field.addEventListener("change", () => set(field.value));
  return make("div", { className: "row" }, make("label", { htmlFor: id, textContent: name, title: name }), range, field);
}
function controls() {
  const box = $("controls");
  if (data.parameters.length) box.append(make("h2", { textContent: "Parameters" }));
  for (const p of data.parameters) {
    box.append(slider(`parameter-${p.name}`, p.name, p.low, p.high, p.step, () => state.values[p.name], (v) => { state.values[p.name] = v; }));
  }
  if (P) box.append(make("h2", { textContent: "Ranges" }));
  if (P && data.where) {
    const constraint = make("code", { textContent: data.where.text });
    box.append(make("p", { className: "hint", id: "always" }, "The constraint ", constraint, " always applies; these ranges restrict it further."));
  }
  data.statistics.forEach((name, p) => {
    const [low, high] = ends[p], range = state.ranges[p];
    box.append(slider(`low-${name}`, `${name}\u00a0≥`, low, high, 1, () => range[0], (v) => { range[0] = v; }));
    box.append(slider(`high-${name}`, `${name}\u00a0≤`, low, high, 1, () => range[1], (v) => { range[1] = v; }));
  });
  if (P > 2) {
    const choose = (k) => make("select", { onchange: (event) => { state.axes[k] = Number(event.target.value); render(); } },
      ...data.statistics.map((name, p) => make("option", { value: p, textContent: name, selected: state.axes[k] === p })));
    $("axes").append(make("label", {}, "horizontal", choose(0)), make("label", {}, "vertical", choose(1)));
  }
}
function remember() {
  const parts = data.parameters.filter((p) => state.values[p.name] !== p.value).map((p) => `${encodeURIComponent(p.name)}=${state.values[p.name]}`);
  data.statistics.forEach((name, p) => ["low", "high"].forEach((end, k) => {
    if (state.ranges[p][k] !== ends[p][k]) parts.push(`${end}.${encodeURIComponent(name)}=${state.ranges[p][k]}`);
  }));
  try { history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : "#"); } catch { /* not allowed for some files */ }
}
function recall() {
  for (const part of location.hash.slice(1).split("&")) {
    const [encoded, text] = part.split("="), value = Number(text);
    if (text === undefined || !Number.isFinite(value)) continue;
    const name = decodeURIComponent(encoded), [end] = name.split("."), p = data.statistics.indexOf(name.slice(end.length + 1));
    if (p >= 0 && (end === "low" || end === "high")) state.ranges[p][end === "low" ? 0 : 1] = value;
    else if (Object.hasOwn(state.values, name)) state.values[name] = value;
  }
}
function render() {
  const result = evaluated();
  $("picture").replaceChildren(P === 0 ? "There are no statistics, so there is one answer." :
    P === 1 || state.axes[0] === state.axes[1] ? curve(result) : heat(result));
  answer(result);
  remember();
}
function question() {
  const box = $("question");
  box.append("maximise ", make("code", { textContent: data.objective ? data.objective.text : "score" }));
  if (data.where) box.append(" where ", make("code", { textContent: data.where.text }));
}
$("title").textContent = document.title = data.title;
recall();
question();
controls();
render();
addEventListener("resize", render);
