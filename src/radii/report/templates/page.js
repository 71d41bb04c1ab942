"use strict";
(() => {
const $ = id => document.getElementById(id);
const NS = "http://www.w3.org/2000/svg";
let D = JSON.parse($("data").textContent);
const S = {eps: D.eps, view: D.reach, off: new Set(), classes: null, target: null, focus: -1, hi: null};

// Elements are built, never parsed: names of networks and classes stay text.
function el(name, attrs, ...kids) {
  const svg = ["svg", "g", "path", "line", "circle", "rect", "text", "title"].includes(name);
  const node = svg ? document.createElementNS(NS, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attrs || {})) if (value !== null) node.setAttribute(key, value);
  node.append(...kids);
  return node;
}
// Ends are rounded towards the safe side: what is proven down, what is broken up.
function safe(v, side) {
  if (v === null || v === undefined) return "–";
  let s = Number(v.toPrecision(4));
  if ((s - v) * side < 0) s = Number((s + side * 10 ** (Math.floor(Math.log10(Math.abs(v))) - 3)).toPrecision(4));
  return String(s);
}
const down = v => safe(v, -1), up = v => safe(v, 1);
const fmt = v => v === null || v === undefined ? "–" : String(Number(v.toPrecision(4)));
const tick = v => v && v < .001 ? v.toExponential() : fmt(v);  // long numbers would run into the axis' name
const pct = v => (100 * v).toFixed(1) + "%";
const className = k => k >= 0 && k < D.classNames.length ? D.classNames[k] : k < 0 ? "–" : String(k);
const short = (t, n) => [...t].length > n ? [...t].slice(0, n - 1).join("") + "…" : t;
const shownSeries = () => D.series.map((s, k) => [s, k]).filter(([s]) => !S.off.has(s.name));
const wrong = D.statuses.indexOf("misclassified");
const filtered = () => S.classes !== null || S.target !== null;

// Long lists come packed: 32 bits an end, rounded towards the safe side.
const KINDS = {lower: Float32Array, upper: Float32Array, seconds: Float32Array, index: Int32Array, label: Int16Array, prediction: Int16Array, status: Uint8Array};
function unpack(data) {
  for (const s of data.series) for (const [name, text] of Object.entries(s.packed || {})) {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    const none = name === "prediction" ? v => v < 0 : v => v !== v;
    s[name] = Array.from(new KINDS[name](bytes.buffer), v => none(v) ? null : v);
  }
  return data;
}
unpack(D);

// What depends on the choice of classes and target only is worked out once per choice.
const memory = new Map();
function once(s, what, make) {
  const key = s.name + "\n" + what;
  if (!memory.has(key)) memory.set(key, make());
  return memory.get(key);
}
const rows = s => once(s, "rows", () => chosenRows(s));
const byClass = s => once(s, "classes", () => {
  const out = new Map();
  for (const r of rows(s)) { if (!out.has(r.label)) out.set(r.label, []); out.get(r.label).push(r); }
  return out;
});

// The rows of a network under the current choice of classes and target.
function chosenRows(s) {
  const keep = label => S.classes === null || S.classes.has(label), out = [];
  if (S.target === null) {
    for (let i = 0; i < s.lower.length; i++)
      if (keep(s.label[i])) out.push({i, lo: s.lower[i], up: s.upper[i], st: s.status[i], label: s.label[i], sec: s.seconds[i]});
  } else if (s.pairs) {
    const p = s.pairs;
    for (let j = 0; j < p.row.length; j++)
      if (p.target[j] === S.target && keep(s.label[p.row[j]]))
        out.push({i: p.row[j], lo: p.lower[j], up: p.upper[j], st: p.status[j], label: s.label[p.row[j]], sec: p.seconds[j]});
  }
  return out;
}
const proven = (r, e) => r.st !== wrong && (r.lo || 0) >= e;
const broken = (r, e) => r.st === wrong || (r.up !== null && r.up <= e);

// {n, low, high}: the shares proven and not broken at ε; from the grid where the page holds no full list.
function share(s, e, list) {
  if (s.curve) {
    if (filtered()) return null;
    const last = s.curve.low.length - 1, place = Math.min(last, e / D.reach * last);
    return {n: s.n, low: s.curve.low[Math.ceil(place)], high: s.curve.high[Math.floor(place)]};
  }
  const all = list || rows(s);
  if (!all.length) return null;
  let a = 0, b = 0;
  for (const r of all) { if (proven(r, e)) a++; if (!broken(r, e)) b++; }
  return {n: all.length, low: a / all.length, high: b / all.length};
}
// Half-width of the guarantee, or null where the choice allows none; one class or target of k costs a factor k.
function halfWidth(s, n) {
  let parts = 1;
  if (S.classes !== null) {
    if (S.classes.size !== 1) return null;
    parts *= new Set(s.label).size;
  }
  if (S.target !== null) parts *= s.pairs ? new Set(s.pairs.target).size : 1;
  return Math.sqrt(Math.log(2 * parts / (1 - D.confidence)) / (2 * n));
}
const clip = v => Math.max(0, Math.min(1, v));

const steps = s => once(s, "steps", () => allSteps(s));
// At most a few steps a pixel: the last one at each place, so that the line never shows more than is known.
function thinned(points) {
  if (points.length < 4000) return points;
  const place = e => Math.floor(e / S.view * 1600);
  return points.filter((p, i) => i === 0 || i === points.length - 1 || place(p[0]) !== place(points[i + 1][0]));
}
function allSteps(s) {
  if (s.curve) {
    const k = s.curve.low.length - 1, at = i => i / k * D.reach;
    return {n: s.n, low: s.curve.low.map((y, i) => [at(i), y]), high: s.curve.high.map((y, i) => [at(i), y])};
  }
  const all = rows(s), n = all.length;
  if (!n) return null;
  const walk = ends => {
    ends.sort((a, b) => a - b);
    const out = [];
    let alive = all.filter(r => r.st !== wrong).length;
    out.push([0, alive / n]);
    for (const e of ends) { out.push([e, alive / n]); alive--; out.push([e, alive / n]); }
    out.push([D.reach, alive / n]);
    return thinned(out);
  };
  const ok = all.filter(r => r.st !== wrong);
  return {n, low: walk(ok.map(r => r.lo || 0)), high: walk(ok.filter(r => r.up !== null).map(r => r.up))};
}

const phone = window.matchMedia("(max-width:600px)");
function frame(box, w, h, label, xs, ys, xname, yname) {
  const svg = el("svg", {viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": label, class: w > 500 ? "wide" : null});
  for (const [t, p] of ys) svg.append(el("line", {class: "grid", x1: 56, x2: w - 10, y1: p, y2: p}), el("text", {x: 50, y: p + 4, "text-anchor": "end"}, t));
  for (const [t, p] of xs) svg.append(el("line", {class: "axis", x1: p, x2: p, y1: h - 40, y2: h - 36}), el("text", {x: p, y: h - 23, "text-anchor": "middle"}, t));
  svg.append(el("path", {class: "axis", d: `M56 8V${h - 40}H${w - 10}`}), el("text", {x: (w + 46) / 2, y: h - 6, "text-anchor": "middle"}, xname));
  svg.append(el("text", {x: 13, y: h / 2 - 16, transform: `rotate(-90 13 ${h / 2 - 16})`, "text-anchor": "middle"}, yname));
  box.replaceChildren(svg);
  return svg;
}
function ticks(top, count = 6) {
  const raw = top / count, unit = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(k => k * unit).find(k => k >= raw);
  const out = [];
  for (let k = 0; k * step <= top * 1.0001; k++) out.push(Number((k * step).toPrecision(6)));
  return out;
}

function drawCurve() {
  const w = phone.matches ? 420 : 900, h = phone.matches ? 330 : 400, X = e => 56 + (w - 66) * e / S.view, Y = v => 8 + (h - 48) * (1 - v);
  const crowd = shownSeries().length > 4;
  const flip = $("asecdf").checked, V = v => flip ? 1 - v : v;
  const svg = frame($("curve"), w, h, "Robust accuracy against ε; the table below holds the figures", ticks(S.view, phone.matches ? 3 : 6).map(t => [fmt(t), X(t)]),
    [0, .2, .4, .6, .8, 1].map(t => [t.toFixed(1), Y(t)]), "perturbation size ε", flip ? "share with a smaller radius" : "robust accuracy");
  const path = (pts, f) => pts.map(([e, v], i) => (i ? "L" : "M") + X(Math.min(e, S.view)).toFixed(1) + " " + Y(V(f(v))).toFixed(1)).join("");
  const same = v => v;
  for (const [s] of shownSeries()) {
    const c = steps(s);
    if (!c) continue;
    const first = S.hi === s.name, g = el("g", {class: "k" + s.colour + (S.hi && !first ? " faded" : "") + (crowd && !first ? " crowd" : "")});
    g.append(el("path", {class: "gap", d: path(c.low, same) + path([...c.high].reverse(), same).replace("M", "L") + "Z"}));
    const hw = halfWidth(s, c.n);
    if ($("band").checked && hw !== null && (!crowd || first))
      for (const [pts, d] of [[c.low, -hw], [c.high, hw]]) g.append(el("path", {class: "s", "stroke-dasharray": "1.5 3", d: path(pts, v => clip(v + d))}));
    g.append(el("path", {class: "s", "stroke-dasharray": "5 3", "stroke-width": 1, d: path(c.high, same)}));
    g.append(el("path", {class: "s", "stroke-width": 2.2, "stroke-dasharray": s.dash || null, d: path(c.low, same)}, el("title", {}, s.name)));
    svg.append(g);
  }
  svg.append(el("line", {class: "mark", id: "mark", y1: 8, y2: h - 40}));
  setMark();
  svg.addEventListener("click", ev => {
    const b = svg.getBoundingClientRect();
    setEps(Math.max(0, Math.min(S.view, ((ev.clientX - b.left) / b.width * w - 56) / (w - 66) * S.view)));
  });
  $("curvenote").textContent = crowd && $("band").checked ? "With more than four networks the band is drawn for the one picked in the legend." : "";
  drawLegend();
}
function drawLegend() {
  $("legend").replaceChildren(...shownSeries().map(([s], i) => {
    const line = el("svg", {viewBox: "0 0 34 10", "aria-hidden": "true"}, el("line", {class: "s", "stroke-width": 3, "stroke-dasharray": s.dash || null, x1: 0, x2: 34, y1: 5, y2: 5}));
    const pick = el("button", {type: "button", "aria-pressed": String(S.hi === s.name), title: "bring to the front"}, line, " " + s.name);
    pick.addEventListener("click", () => { S.hi = S.hi === s.name ? null : s.name; drawCurve(); $("legend").querySelectorAll("button")[i].focus(); });
    return el("li", {class: "k" + s.colour}, pick);
  }));
}
function setMark() {
  const mark = $("mark");
  if (!mark) return;
  const x = 56 + (mark.ownerSVGElement.viewBox.baseVal.width - 66) * S.eps / S.view;
  mark.toggleAttribute("hidden", S.eps > S.view);
  mark.setAttribute("x1", x);
  mark.setAttribute("x2", x);
}

function fillShares() {
  const body = document.querySelector("#sharetable tbody"), out = [];
  for (const [s] of shownSeries()) {
    const list = s.curve ? null : rows(s), at = share(s, S.eps, list), hw = at && halfWidth(s, at.n);
    const unseen = at && hw !== null ? `${pct(clip(at.low - hw))} to ${pct(clip(at.high + hw))}` : "–";
    const cells = at ? [at.n, accuracy(s, list), pct(at.low), pct(at.high - at.low), pct(1 - at.high), unseen, median(s, list)] : ["0", "–", "–", "–", "–", "–", "–"];
    out.push(el("tr", {class: "k" + s.colour}, el("th", {scope: "row"}, s.name), ...cells.map(c => el("td", {}, String(c)))));
  }
  body.replaceChildren(...out);
  const note = document.querySelector("#shares .note");
  if (note) note.textContent = note.textContent.replace(/at ε = [^;]+;/, `at ε = ${fmt(S.eps)};`);
  $("sharenote").textContent = S.classes !== null && S.classes.size !== 1 ? "A guarantee is shown for all classes or for one of them (then with Bonferroni over the classes)." :
    filtered() ? "The guarantee holds for all classes or targets at once (Bonferroni), so it may be picked after looking." : "";
}
const accuracy = (s, list) => list ? pct(list.filter(r => r.st !== wrong).length / list.length) : pct(s.accuracy);
const median = (s, list) => list ? once(s, "median", () => middle(list)) : "–";
function middle(list) {
  const mid = ends => { ends.sort((a, b) => a - b); return ends[Math.ceil(ends.length / 2) - 1]; };
  const a = mid(list.map(r => r.st === wrong ? 0 : r.lo || 0)), b = mid(list.map(r => r.st === wrong ? 0 : r.up === null ? Infinity : r.up));
  return a === b ? fmt(a) : `${down(a)} to ${b === Infinity ? "–" : up(b)}`;
}

let dots = [];
function drawDots() {
  const list = shownSeries(), base = phone.matches ? 420 : 900, h = phone.matches ? 330 : 400;
  const step = Math.max(46, Math.min(400, (base - 66) / Math.max(1, list.length))), w = Math.max(base, 66 + step * list.length);
  const top = S.view, sets = list.map(([s]) => rows(s).filter(r => (r.lo || 0) <= top)), Y = v => 8 + (h - 48) * (1 - v / top);
  const svg = frame($("dots"), w, h, "Radii of single inputs by network", [], ticks(top).map(t => [tick(t), Y(t)]), "", "radius ε");
  svg.setAttribute("tabindex", "0");
  if (w > base) svg.style.width = w + "px";
  dots = [];
  const most = 6000, total = sets.reduce((n, r) => n + r.length, 0);
  list.forEach(([s, k], at) => {
    const mid = 56 + step * (at + .5), g = el("g", {class: "k" + s.colour});
    const name = el("text", {x: mid, y: h - 22, "text-anchor": "middle"}, short(s.name, Math.floor(step / 6.5)), el("title", {}, s.name));
    if (list.length > 9) name.textContent = String(at + 1);
    g.append(name);
    const low = sets[at].filter(r => r.st !== wrong).map(r => r.lo || 0).sort((a, b) => a - b);
    if (low.length > 4 && !s.curve) {
      const q = f => low[Math.floor(f * (low.length - 1))], half = step * .36;
      g.append(el("rect", {class: "box", x: mid - half, width: 2 * half, y: Y(q(.75)), height: Math.max(1, Y(q(.25)) - Y(q(.75)))}),
        el("line", {class: "s", "stroke-width": 2.5, x1: mid - half, x2: mid + half, y1: Y(q(.5)), y2: Y(q(.5))}));
    }
    const part = sets[at].length > 1 && total > most ? spread(sets[at], Math.ceil(total / most)) : sets[at];
    for (const r of part) {
      const unproven = r.st !== wrong && r.lo === null && r.up !== null && r.up <= top;
      const x = mid + (((r.i * 0.618034) % 1) - .5) * step * .64, y = Y(r.st === wrong ? 0 : unproven ? r.up : r.lo || 0);
      if (r.st !== wrong && r.up !== null && r.lo !== null) g.append(el("line", {class: "s", x1: x, x2: x, y1: y, y2: Y(Math.min(top, r.up))}));
      const shape = r.st === wrong ? el("path", {class: "dot s", "stroke-width": 1.6, d: `M${x - 3.5} ${y - 3.5}l7 7m0-7l-7 7`}) :
        unproven ? el("path", {class: "dot h", "stroke-width": 1.4, d: `M${x} ${y + 5}l4.5 -8h-9z`}) : r.up === null ? el("path", {class: "dot h", "stroke-width": 1.4, d: `M${x} ${y - 5}l4.5 8h-9z`}) : el("circle", {class: "dot f", cx: x, cy: y, r: total > 3000 ? 1.8 : 3});
      shape.dataset.k = dots.length;
      dots.push({s, r, shape});
      g.append(shape);
    }
    svg.append(g);
  });
  const notes = [];
  if (list.length > 9) notes.push("Networks by number: " + list.map(([s], i) => `${i + 1} ${s.name}`).join("; ") + ".");
  if (list.some(([s]) => s.curve)) notes.push("Too many inputs to list: only the most fragile of each network are drawn here.");
  else if (total > most) notes.push(`The most fragile and an even part of the ${total} inputs are drawn; choose a network or a class to see more, or ask for an input by its number.`);
  const beyond = list.reduce((n, [s], i) => n + rows(s).length - sets[i].length, 0);
  if (beyond) notes.push(`${beyond} inputs lie above ε = ${fmt(top)}.`);
  $("dotnote").textContent = notes.join(" ");
  const of = ev => ev.target.dataset && ev.target.dataset.k !== undefined ? dots[ev.target.dataset.k] : null;
  svg.addEventListener("pointerover", ev => { const d = of(ev); if (d) tip(d, ev.clientX, ev.clientY); });
  svg.addEventListener("pointerout", () => { $("tip").hidden = true; });
  svg.addEventListener("click", ev => { const d = of(ev); if (d) detail(d); });
  svg.addEventListener("keydown", ev => {
    const move = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[ev.key];
    if (move && dots.length) {
      if (dots[S.focus]) dots[S.focus].shape.classList.remove("on");
      S.focus = (S.focus + move + dots.length) % dots.length;
      const d = dots[S.focus], b = d.shape.getBoundingClientRect();
      d.shape.classList.add("on");
      tip(d, b.right, b.bottom);
      ev.preventDefault();
    } else if ((ev.key === "Enter" || ev.key === " ") && dots[S.focus]) { detail(dots[S.focus]); ev.preventDefault(); }
    else if (ev.key === "Escape") $("tip").hidden = true;
  });
}
// The most fragile first, then every k-th.
function spread(list, k) {
  const order = [...list].sort((a, b) => (a.st === wrong) - (b.st === wrong) || (a.lo || 0) - (b.lo || 0));
  return order.filter((_, i) => i < 100 || i % k === 0);
}
function lines(d) {
  const {s, r} = d, out = [`${s.name}`, `input ${s.index[r.i]} of ${s.data}, class ${className(r.label)}`, `status: ${D.statuses[r.st]}`];
  if (r.st === wrong) out.push(`taken for ${s.prediction[r.i] === null ? "another class" : className(s.prediction[r.i])} without any change`);
  else out.push(r.lo === null ? "nothing proven" : `proven robust up to ${down(r.lo)}`, r.up === null ? "no witness known" : `broken at ${up(r.up)}`);
  if (r.sec !== null) out.push(`${fmt(r.sec)} CPU seconds`);
  return out;
}
function tip(d, x, y) {
  const t = $("tip");
  t.textContent = lines(d).join("\n");
  t.hidden = false;
  t.style.left = Math.max(4, Math.min(x + 14, innerWidth - t.offsetWidth - 6)) + "px";
  t.style.top = Math.max(4, Math.min(y + 14, innerHeight - t.offsetHeight - 6)) + "px";
}
function pics(s, r) {
  const w = S.target === null ? s.witness[r.i] : undefined;
  if (!w) return null;
  return shownPictures(s, r, w);
}
function shownPictures(s, r, w) {
  const [prediction, distance, witness, original, change] = w, one = (b, alt, text) => el("figure", {}, el("img", {src: "data:image/png;base64," + b, alt}), el("figcaption", {}, text));
  const out = el("div", {class: "pics"}), is = className(r.label), seen = className(prediction);
  if (original) out.append(one(original, `input ${s.index[r.i]}, class ${is}`, "is " + is));
  out.append(one(witness, `witness of input ${s.index[r.i]}, taken for class ${seen}`, "taken for " + seen));
  if (change) out.append(one(change, "what was changed, enlarged", `change ≤ ${up(distance)}`));
  return out;
}
function detail(d) {
  $("tip").hidden = true;
  const [head, ...rest] = lines(d);
  $("detailhead").textContent = head;
  $("detailbody").replaceChildren(...rest.map(t => el("p", {}, t)), witnessOf(d.s, d.r));
  $("detail").showModal();
}
// The picture of a witness: from the page, or from the server that sent it.
function witnessOf(s, r) {
  const found = pics(s, r), none = "No picture of a witness in this page.";
  if (found) return found;
  const box = el("div", {class: "note"}, none);
  if (D.live && S.target === null && r.st !== wrong && r.up !== null) {
    box.textContent = "Asking for the witness…";
    const ask = new URLSearchParams(location.search);
    ask.set("series", D.series.indexOf(s));
    ask.set("row", r.i);
    ask.set("index", s.index[r.i]);
    fetch("/witness?" + ask).then(a => a.ok ? a.json() : null).catch(() => null).then(w => w ? box.replaceChildren(shownPictures(s, r, w)) : (box.textContent = "No picture of this witness."));
  }
  return box;
}
function find() {
  const asked = $("find").value.trim(), parts = [];
  for (const [s] of asked === "" ? [] : shownSeries()) for (const r of rows(s)) if (String(s.index[r.i]) === asked) parts.push({s, r});
  $("findnote").textContent = asked === "" || parts.length ? "" : `no input ${asked} in this choice` + (D.series.some(s => s.curve) ? " (only the most fragile are listed)" : "");
  if (!parts.length) return;
  $("detailhead").textContent = `Input ${asked}`;
  $("detailbody").replaceChildren(...parts.slice(0, 60).flatMap(d => [el("h3", {}, d.s.name), el("p", {}, lines(d).slice(1).join("; ")), witnessOf(d.s, d.r)]));
  $("detail").showModal();
}

const shade = v => "m" + Math.min(7, Math.floor(v * 8));
function drawClasses() {
  const keys = S.classes === null ? D.classes : D.classes.filter(k => S.classes.has(k));
  const table = el("table", {class: "map"}, el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "network"), ...keys.map(k => el("th", {scope: "col"}, className(k)))))), body = el("tbody", {});
  for (const [s] of shownSeries()) {
    const by = s.curve ? new Map() : byClass(s), row = el("tr", {}, el("th", {scope: "row"}, s.name));
    for (const k of keys) {
      const at = by.has(k) ? share(s, S.eps, by.get(k)) : null;
      const text = !at ? "–" : (100 * at.low).toFixed(0) + (at.high > at.low ? "–" + (100 * at.high).toFixed(0) : "");
      row.append(el("td", {class: at ? shade(at.low) : null, title: at ? `${s.name}, class ${className(k)}: ${at.n} inputs` : "no inputs"}, text));
    }
    body.append(row);
  }
  table.append(body);
  $("classmap").replaceChildren(el("p", {class: "note"}, `per cent, at ε = ${fmt(S.eps)}`), table);
}
function drawTargets() {
  const s = D.series.find(s => s.name === $("pairnet").value);
  if (!s || !s.pairs) return;
  const cells = new Map(), p = s.pairs;
  p.row.forEach((row, j) => { const key = s.label[row] + ">" + p.target[j]; if (p.status[j] === wrong) return; if (!cells.has(key)) cells.set(key, []); cells.get(key).push(p.lower[j] || 0); });
  const targets = [...new Set(p.target)].sort((a, b) => a - b), labels = [...new Set(p.row.map(r => s.label[r]))].sort((a, b) => a - b);
  const mid = v => [...v].sort((a, b) => a - b)[Math.ceil(v.length / 2) - 1], all = [...cells.values()].map(mid), top = all.reduce((a, b) => Math.max(a, b), 1e-12);
  const body = el("tbody", {});
  for (const a of labels) body.append(el("tr", {}, el("th", {scope: "row"}, className(a)), ...targets.map(b => {
    const v = cells.get(a + ">" + b);
    return v ? el("td", {class: shade(mid(v) / top)}, `${down(mid(v))} (${v.length})`) : el("td", {}, a === b ? "" : "–");
  })));
  $("targetmap").replaceChildren(el("table", {class: "map"}, el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "class \\ target"), ...targets.map(b => el("th", {scope: "col"}, className(b))))), body));
}
function drawPairs() {
  const find = id => D.series.find(s => s.name === $(id).value), a = find("neta"), b = find("netb"), box = $("pairs");
  if (!a || !b || a === b) { box.replaceChildren(); $("comparetext").textContent = "Choose two networks."; return; }
  const row = D.compare.find(r => (r[0] === a.name && r[1] === b.name) || (r[1] === a.name && r[0] === b.name));
  const place = new Map(rows(a).map(r => [a.data + "/" + a.index[r.i], r])), both = [];
  for (const r of rows(b)) { const other = place.get(b.data + "/" + b.index[r.i]); if (other) both.push([other, r]); }
  const more = both.filter(([x, y]) => (x.lo || 0) > (y.up === null ? Infinity : y.up)).length, less = both.filter(([x, y]) => (y.lo || 0) > (x.up === null ? Infinity : x.up)).length;
  $("comparetext").textContent = (row ? `Decision: ${row[2]} (p = ${row[3]}${row[4] === row[3] ? "" : `, ${row[4]} over what the gaps hide`}; after Holm ${row[5]}). ` : "") +
    (both.length ? `Of ${both.length} shared inputs, ${more} are surely more robust on ${a.name} and ${less} on ${b.name}.` : "The two share no listed inputs.");
  if (!both.length) { box.replaceChildren(); return; }
  const reach = both.reduce((m, [x, y]) => Math.max(m, x.lo || 0, y.lo || 0), D.reach / 100) * 1.05;
  const w = phone.matches ? 420 : 520, h = w, X = v => 56 + (w - 66) * v / reach, Y = v => 8 + (h - 48) * (1 - v / reach);
  const marks = ticks(reach, 5), svg = frame(box, w, h, `Radii of shared inputs on ${a.name} and ${b.name}`, marks.map(t => [tick(t), X(t)]), marks.map(t => [tick(t), Y(t)]), short("radius on " + a.name, 60), short("radius on " + b.name, 60));
  svg.append(el("line", {class: "mark", x1: X(0), y1: Y(0), x2: X(reach), y2: Y(reach)}));
  const g = el("g", {class: "k0"});
  const drawn = both.length > 4000 ? both.filter((_, i) => i % Math.ceil(both.length / 4000) === 0) : both;
  for (const [x, y] of drawn) {
    const bad = x.st === wrong || y.st === wrong, px = X(x.lo || 0), py = Y(y.lo || 0);
    const mark = bad ? el("path", {class: "s", d: `M${px - 3} ${py - 3}l6 6m0-6l-6 6`}) : el("circle", {class: "f", cx: px, cy: py, r: 3, "fill-opacity": .7});
    mark.append(el("title", {}, `input ${a.index[x.i]}: ${down(x.lo)} and ${down(y.lo)}`));
    g.append(mark);
  }
  svg.append(g);
}
function drawGallery() {
  const found = [];
  for (const [s] of shownSeries()) for (const r of rows(s)) if (r.st !== wrong && r.up !== null && s.witness[r.i]) found.push([s, r]);
  found.sort((x, y) => x[1].up - y[1].up);
  $("gallery").replaceChildren(...found.slice(0, 24).map(([s, r]) => el("article", {}, el("h3", {}, `${s.name}, input ${s.index[r.i]}: broken at ${up(r.up)}`), pics(s, r) || "")));
}

function setEps(e) {
  S.eps = e;
  $("eps").value = Math.round(e / S.view * 1000);
  $("eps").setAttribute("aria-valuetext", fmt(e));
  $("epsnow").value = fmt(e);
  setMark();
  fillShares();
  drawClasses();
}
function draw() { memory.clear(); drawCurve(); drawDots(); drawTargets(); drawPairs(); drawGallery(); setEps(S.eps); counts(); }
function counts() {
  $("netcount").textContent = `(${shownSeries().length} of ${D.series.length})`;
  $("classcount").textContent = S.classes === null ? "(all)" : `(${S.classes.size} of ${D.classes.length})`;
}
function picks(box, items, on, change) {
  const all = el("button", {type: "button"}, "all"), none = el("button", {type: "button"}, "none");
  const boxes = items.map(([value, text]) => { const c = el("input", {type: "checkbox"}); c.checked = on(value); c.addEventListener("change", () => change(boxes)); return [value, c, el("label", {}, c, " " + text)]; });
  for (const [b, v] of [[all, true], [none, false]]) b.addEventListener("click", () => { boxes.forEach(t => { t[1].checked = v; }); change(boxes); });
  box.replaceChildren(all, none, ...boxes.map(t => t[2]));
}
function options(select, names, chosen) {
  select.replaceChildren(...names.map(([value, text]) => el("option", {value}, text)));
  if (chosen !== undefined) select.value = chosen;
}
function controls() {
  const names = D.series.map(s => [s.name, s.name]);
  picks($("nets"), names, v => !S.off.has(v), boxes => { S.off = new Set(boxes.filter(t => !t[1].checked).map(t => t[0])); draw(); });
  picks($("classes"), D.classes.map(k => [k, className(k)]), v => S.classes === null || S.classes.has(v), boxes => {
    const on = boxes.filter(t => t[1].checked).map(t => t[0]);
    S.classes = on.length === boxes.length ? null : new Set(on);
    draw();
  });
  const targets = [...new Set(D.series.flatMap(s => s.pairs ? s.pairs.target : []))].sort((a, b) => a - b);
  options($("target"), [["", "any"], ...targets.map(t => [t, className(t)])], S.target === null ? "" : S.target);
  options($("pairnet"), names.filter((_, i) => D.series[i].pairs));
  options($("neta"), names, names[0] && names[0][0]);
  options($("netb"), names, (names[1] || names[0] || [""])[0]);
}
function theme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").setAttribute("aria-pressed", String(dark));
  $("theme").textContent = dark ? "Light" : "Dark";
}
theme(matchMedia("(prefers-color-scheme: dark)").matches);
$("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme !== "dark"));
if ($("controls")) {
  $("controls").addEventListener("submit", ev => ev.preventDefault());
  const typed = (id, least) => { const [a, b] = $(id).value.split("/").map(Number), e = b === undefined ? a : a / b; return Number.isFinite(e) && e >= least ? e : null; };
  $("eps").addEventListener("input", () => setEps($("eps").value / 1000 * S.view));
  $("epsnow").addEventListener("change", () => setEps(typed("epsnow", 0) ?? S.eps));
  $("view").addEventListener("change", () => { S.view = Math.min(D.reach, typed("view", D.reach / 1e4) ?? D.reach); $("view").value = fmt(S.view); draw(); });
  $("find").addEventListener("change", find);
  $("view").value = fmt(S.view);
  $("target").addEventListener("change", () => { S.target = $("target").value === "" ? null : Number($("target").value); draw(); });
  for (const id of ["asecdf", "band"]) $(id).addEventListener("change", drawCurve);
  $("pairnet").addEventListener("change", drawTargets);
  for (const id of ["neta", "netb"]) $(id).addEventListener("change", drawPairs);
  controls();
  draw();
}
// New data under the reader's choices; the controls are rebuilt only when there is something new to choose.
function renew(data) {
  const choices = d => JSON.stringify([d.series.map(s => [s.name, !!s.pairs]), d.classes, d.classNames]);
  const other = choices(data) !== choices(D), all = S.view === D.reach, ids = ["neta", "netb", "pairnet"];
  D = data;
  if (!$("controls")) return;
  if (all || S.view > D.reach) S.view = D.reach;
  if (document.activeElement !== $("view")) $("view").value = fmt(S.view);
  const keep = ids.map(id => $(id).value);
  if (other) controls();
  ids.forEach((id, i) => { if ([...$(id).options].some(o => o.value === keep[i])) $(id).value = keep[i]; });
  draw();
}
// Live: the server says that something changed; the same page is asked for again and its parts are exchanged.
if (D.live) {
  const asked = new URLSearchParams(location.search);
  asked.set("seen", D.state);
  const source = new EventSource("/events?" + asked), say = t => { if ($("live")) $("live").textContent = t; };
  let busy = false;
  source.addEventListener("open", () => say("live"));
  source.addEventListener("error", () => say("connection lost; trying again"));
  source.addEventListener("change", async () => {
    if (busy) return;
    busy = true;
    try {
      const answer = await fetch(location.href), fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!$("controls") !== !fresh.getElementById("controls")) { location.reload(); return; }
      const unfolded = $("provenance").open;
      for (const id of ["facts", "reaches", "rest"]) $(id).replaceChildren(...fresh.getElementById(id).childNodes);
      $("provenance").open = unfolded;
      hints();
      renew(unpack(JSON.parse(fresh.getElementById("data").textContent)));
      say("updated " + new Date().toLocaleTimeString());
    } finally { busy = false; }
  });
}
// Tables and figures that are wider than the screen say so.
function hints() {
  for (const box of document.querySelectorAll(".scroll, .figure")) box.toggleAttribute("data-more", box.scrollWidth > box.clientWidth + 1);
}
phone.addEventListener("change", () => { if ($("controls")) draw(); });
window.addEventListener("resize", hints);
window.addEventListener("beforeprint", () => { $("provenance").open = true; });
document.addEventListener("toggle", hints, true);
hints();
document.documentElement.dataset.ready = "yes";
})();
