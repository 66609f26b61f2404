(() => {
"use strict";
const all = (what, of = document) => [...of.querySelectorAll(what)];
const make = (name, attributes = {}, text = "") => {
  const node = document.createElement(name);
  Object.assign(node, attributes);
  node.textContent = text;
  return node;
};
const drawn = (name, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  return node;
};

// Tables are sorted by the column whose head is pressed.
for (const table of all("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  all("th", table).forEach(head => {
    const button = make("button", { type: "button" }, head.textContent);
    head.replaceChildren(button);
    button.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      all("th", table).forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const of = row => row.cells[head.cellIndex].textContent;
      const number = text => parseFloat(text.replace("\u2212", "-").replaceAll("\u202f", ""));
      const order = (a, b) => {
        const [x, y] = [number(a), number(b)];
        if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
        const sign = isNaN(x) ? a.localeCompare(b) : x - y;
        return down ? -sign : sign;
      };
      body.append(...[...body.rows].sort((a, b) => order(of(a), of(b))));
    };
  });
}

// An axis as the picture says it: values low to high at places from to.
const axis = text => {
  const [low, high, kind, from, to, factor] = text.split(" ");
  return { low: +low, high: +high, log: kind === "log", from: +from, to: +to, factor: +factor };
};
const value = (a, place) => {
  const part = (place - a.from) / (a.to - a.from);
  return a.log ? a.low * (a.high / a.low) ** part : a.low + part * (a.high - a.low);
};
const placed = (a, v) => {
  const part = a.log ? Math.log(v / a.low) / Math.log(a.high / a.low) : (v - a.low) / (a.high - a.low);
  return a.from + part * (a.to - a.from);
};
const short = v => {
  const size = Math.abs(v);
  if (size >= 1e9) return +(v / 1e9).toPrecision(4) + "G";
  if (size >= 1e6) return +(v / 1e6).toPrecision(4) + "M";
  if (size && size < 1e-3) return v.toExponential(2);
  const text = String(+v.toPrecision(4));
  return size < 1e4 ? text : text.replace(/\B(?=(\d{3})+$)/g, "\u202f");
};
const ticks = (a, scale, count) => {
  const [low, high] = [a.low * scale, a.high * scale];
  if (a.log && high / low > 30) {
    const found = [];
    for (let k = Math.ceil(Math.log10(low)); 10 ** k <= high; k++) found.push(10 ** k);
    if (found.length > 1) return found;
  }
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(n => n * power).find(step => step >= raw) || 10 * power;
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step);
  return found;
};

// Lines of a path as lists of places.
const lines = data => data.split("M").slice(1).map(part => {
  const n = part.match(/-?\d*\.?\d+/g).map(Number);
  const points = [[n[0], n[1]]];
  for (let i = 2; i + 1 < n.length; i += 2) {
    const last = points[points.length - 1];
    points.push([last[0] + n[i], last[1] + n[i + 1]]);
  }
  return points;
});
const titled = node => node.querySelector("title")?.textContent || "";

for (const svg of all("svg.exmy")) {
  const panels = all("g.panel", svg).filter(g => !g.dataset.categories).map(g => ({
    g, x: axis(g.dataset.x), y: axis(g.dataset.y), inner: g.querySelector("svg"), marks: [],
  })).filter(p => p.x.high > p.x.low && p.y.high > p.y.low && !p.g.querySelector(".c"));
  const figure = svg.parentElement;
  if (!panels.length || figure.tagName !== "FIGURE") continue;
  for (const p of panels) {
    for (const path of all("path", p.inner)) {
      const kind = path.getAttribute("class")[0], data = path.getAttribute("d");
      const dots = kind === "p" ? data.split("M").slice(1).map(part => {
        const [, x, y, shape] = part.match(/^(-?[\d.]+) ?(-?[\d.]+)(.*)$/);
        return { x: +x, y: +y, shape };
      }) : null;
      p.marks.push({ path, kind, data, dots, name: titled(path), lines: "lfbr".includes(kind) ? lines(data) : [] });
    }
  }
  for (const { x, marks } of panels) {
    const most = Math.max(2, ...marks.filter(m => m.kind === "l").flatMap(m => m.lines).map(part => part.length));
    for (const mark of marks) mark.unit = (x.to - x.from) / (most - 1);
  }
  const bottom = panels[panels.length - 1];
  const names = [...new Set(all(".y", svg).map(g => g.dataset.name))];
  const hidden = new Set();
  const state = { from: bottom.x.from, to: bottom.x.to, smooth: 0, tokens: false };
  const perStep = +svg.dataset.tokens || 0;
  const label = all(":scope > text.q.m", svg).find(text => text.textContent === "step");

  // By places, not by points: the edges of a band have others than its line.
  const averaged = (points, unit) => {
    let sum = 0, weight = 0, last = points[0][0] - unit;
    return points.map(([x, y]) => {
      const old = state.smooth ** Math.max((x - last) / unit, .1);
      [sum, weight, last] = [old * sum + (1 - old) * y, old * weight + 1 - old, x];
      return [x, sum / weight];
    });
  };
  // A band is its upper edge there and its lower edge back.
  const around = (ring, unit) => {
    const end = Math.max(...ring.map(([x]) => x)), turn = ring.findLastIndex(([x]) => x === end);
    const back = ring.slice(turn).reverse();
    return [...averaged(ring.slice(0, Math.max(turn, 1)), unit), ...averaged(back, unit).reverse()];
  };
  const current = mark => {
    const by = { l: averaged, b: around }[mark.kind];
    return by && state.smooth ? mark.lines.map(points => by(points, mark.unit)) : mark.lines;
  };

  const redraw = () => {
    const whole = state.from === bottom.x.from && state.to === bottom.x.to;
    const plain = whole && !state.smooth;
    for (const node of all("[data-new]", svg)) node.remove();
    for (const p of panels) {
      const inside = x => x >= state.from && x <= state.to;
      let [low, high] = [p.y.from, p.y.to];
      if (!whole) {
        const ys = p.marks.filter(m => m.kind === "l" && !hidden.has(m.name))
          .flatMap(current).flat().filter(([x]) => inside(x)).map(([, y]) => y);
        const [a, b] = [Math.max(...ys), Math.min(...ys)];
        if (ys.length > 1 && a > b) [low, high] = [a + (a - b) * .06, b - (a - b) * .06];
      }
      const atX = x => p.x.from + (x - state.from) / (state.to - state.from) * (p.x.to - p.x.from);
      const atY = y => p.y.from + (y - low) / (high - low) * (p.y.to - p.y.from);
      p.inner.setAttribute("overflow", "hidden");
      if (plain && p.inner.dataset.was !== undefined) p.inner.setAttribute("overflow", p.inner.dataset.was);
      const text = points => points.map(([x, y], i) => (i ? "L" : "M") + atX(x).toFixed(1) + " " + atY(y).toFixed(1)).join("");
      for (const m of p.marks) {
        const end = m.kind === "b" ? "Z" : "";
        if (m.kind === "r") {
          const y = atY(m.lines[0][0][1]).toFixed(1);
          m.path.setAttribute("d", `M${p.x.from} ${y}L${p.x.to} ${y}`);
        } else if (m.dots) {
          const at = d => `M${atX(d.x).toFixed(1)} ${atY(d.y).toFixed(1)}${d.shape}`;
          m.path.setAttribute("d", plain ? m.data : m.dots.map(at).join(""));
        } else if (m.lines.length) {
          m.path.setAttribute("d", plain ? m.data : current(m).map(points => text(points) + end).join(""));
        }
        m.path.classList.toggle("gone", hidden.has(m.name) || m.kind === "x" && !whole);
      }
      for (const node of all(".u,.o", p.g)) node.classList.toggle("gone", !plain || hidden.has(titled(node)));
      const y = { ...p.y, low: value(p.y, low), high: value(p.y, high) };
      const x = { ...p.x, low: value(p.x, state.from), high: value(p.x, state.to) };
      const scale = state.tokens ? perStep : 1;
      const fresh = !whole || state.tokens;
      for (const node of all(":scope > .g", p.g)) node.classList.toggle("gone", !whole || state.tokens);
      for (const node of all(":scope > .q.e", p.g)) node.classList.toggle("gone", !whole);
      for (const node of all(":scope > .q.m[dy]", p.g)) node.classList.toggle("gone", fresh);
      if (!fresh) continue;
      const grid = (x1, y1, x2, y2) =>
        p.g.insertBefore(drawn("path", { class: "g", "data-new": "", d: `M${x1} ${y1}L${x2} ${y2}` }), p.inner);
      const write = (x, y, more, text) => {
        const node = drawn("text", { x, y, "data-new": "", ...more });
        node.textContent = text;
        p.g.insertBefore(node, p.inner);
      };
      for (const tick of ticks(y, 1, 5)) {
        const at = placed(y, tick);
        grid(p.x.from, at, p.x.to, at);
        if (!whole) write(p.x.from - 8, at, { class: "q e", dy: ".35em" }, short(tick / 10 ** p.y.factor));
      }
      for (const tick of ticks(x, scale, 4)) {
        const at = placed(x, tick / scale);
        grid(at, p.y.to, at, p.y.from);
        if (p === bottom) write(at, p.y.from + 8, { class: "q m", dy: ".9em" }, short(tick));
      }
    }
    if (label) label.textContent = state.tokens ? "tokens" : "step";
    for (const g of all(".y", svg)) g.classList.toggle("off", hidden.has(g.dataset.name));
  };
  for (const p of panels) p.inner.dataset.was = p.inner.getAttribute("overflow") || "hidden";

  // Choices below the picture.
  const tools = make("details", { className: "tools" });
  tools.append(make("summary", {}, "Lines, smoothing, zoom"));
  const boxes = new Map();
  const choice = (text, input) => {
    const node = make("label");
    node.append(input, " " + text);
    tools.append(node);
  };
  if (names.length > 1) for (const name of names) {
    const box = make("input", { type: "checkbox", checked: true });
    box.onchange = () => { hidden[box.checked ? "delete" : "add"](name); redraw(); };
    boxes.set(name, box);
    choice(name, box);
  }
  const slider = make("input", { type: "range", min: 0, max: .98, step: .02, value: 0 });
  slider.oninput = () => { state.smooth = +slider.value; redraw(); };
  choice("smoothing", slider);
  if (perStep && label) {
    const box = make("input", { type: "checkbox" });
    box.onchange = () => { state.tokens = box.checked; redraw(); };
    choice("tokens instead of steps", box);
  }
  const reset = make("button", { type: "button" }, "whole axis");
  reset.onclick = () => { [state.from, state.to] = [bottom.x.from, bottom.x.to]; redraw(); };
  tools.append(reset, make("p", {}, "Drag over the picture to zoom, double-click for the whole axis; press a name to hide its line."));
  figure.append(tools);
  for (const g of all(".y", svg)) g.onclick = () => boxes.get(g.dataset.name)?.click();

  // Values at the pointer, or at arrow keys.
  const tip = make("div", { className: "tip gone" });
  tip.setAttribute("role", "status");
  figure.append(tip);
  const at = event => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const over = ({ x, y }) => panels.find(p => x >= p.x.from && x <= p.x.to && y <= p.y.from && y >= p.y.to);
  let cursor = null;
  const clear = () => { tip.classList.add("gone"); all(".rule", svg).forEach(node => node.remove()); };
  const show = (p, x) => {
    clear();
    cursor = { p, x };
    const place = state.from + (x - p.x.from) / (p.x.to - p.x.from) * (state.to - state.from);
    for (const q of panels) q.g.append(drawn("path", { class: "rule", d: `M${x} ${q.y.to}L${x} ${q.y.from}` }));
    const rows = [];
    for (const m of p.marks) {
      if (m.kind !== "l" || hidden.has(m.name) || !m.lines.length) continue;
      for (const points of current(m)) {
        const i = points.findIndex(([px]) => px >= place);
        if (i < 0 || (i === 0 && points[0][0] > place + 1)) continue;
        const [b, a] = [points[i], points[Math.max(i - 1, 0)]];
        const part = b[0] > a[0] ? (place - a[0]) / (b[0] - a[0]) : 0;
        const y = a[1] + part * (b[1] - a[1]);
        rows.push([value(p.y, y), m.name, getComputedStyle(m.path).stroke]);
        break;
      }
    }
    if (!rows.length) return;
    const title = all(':scope > text[class="q"]', p.g).map(text => text.textContent).join(" ");
    const [, unit = ""] = title.match(/[,(] ?(%|nats[^,)]*|\w+ of a nat)/) || [];
    rows.sort((a, b) => b[0] - a[0]);
    const v = value(p.x, place);
    const head = state.tokens ? `${short(v * perStep)} tokens` : `${label ? "step " : ""}${short(label ? Math.round(v) : v)}`;
    tip.replaceChildren(make("b", {}, head));
    for (const [y, name, colour] of rows.slice(0, 16)) {
      const mark = make("i");
      mark.style.color = colour;
      const row = make("div");
      row.append(mark, `${name} ${short(y)} ${unit}`);
      tip.append(row);
    }
    tip.classList.remove("gone");
    const box = svg.getBoundingClientRect(), frame = figure.getBoundingClientRect(), zoom = box.width / svg.viewBox.baseVal.width;
    const left = box.left - frame.left + x * zoom, width = tip.offsetWidth;
    tip.style.left = Math.max(0, left + 12 + width > frame.width ? left - width - 12 : left + 12) + "px";
    tip.style.top = box.top - frame.top + p.y.to * zoom + "px";
  };
  let drag = null;
  svg.onpointerdown = event => {
    const point = at(event), p = over(point);
    if (p && event.pointerType === "mouse") { drag = { p, x: point.x }; event.preventDefault(); }
  };
  svg.onpointermove = event => {
    const point = at(event), p = over(point);
    all(".pick", svg).forEach(node => node.remove());
    if (drag) {
      const x = Math.min(Math.max(point.x, drag.p.x.from), drag.p.x.to);
      drag.to = x;
      for (const q of panels) q.g.append(drawn("rect", { class: "pick", x: Math.min(x, drag.x), width: Math.abs(x - drag.x),
        y: q.y.to, height: q.y.from - q.y.to }));
    } else if (p) show(p, point.x); else clear();
  };
  svg.onpointerup = () => {
    all(".pick", svg).forEach(node => node.remove());
    if (drag && drag.to !== undefined && Math.abs(drag.to - drag.x) > 8) {
      const span = x => state.from + (x - drag.p.x.from) / (drag.p.x.to - drag.p.x.from) * (state.to - state.from);
      const [a, b] = [span(drag.x), span(drag.to)];
      [state.from, state.to] = [Math.min(a, b), Math.max(a, b)];
      clear();
      redraw();
    }
    drag = null;
  };
  svg.onpointerleave = () => { clear(); };
  svg.ondblclick = () => reset.click();
  svg.setAttribute("tabindex", "0");
  svg.onkeydown = event => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") clear();
    if (!by) return;
    event.preventDefault();
    const p = cursor?.p || panels[0], width = p.x.to - p.x.from;
    show(p, Math.min(Math.max((cursor?.x ?? p.x.from) + by * width / 100, p.x.from), p.x.to));
  };
  svg.onblur = clear;
}
addEventListener("beforeprint", () => all("details:not(.tools,details details)").forEach(node => { node.open = true; }));
})();
