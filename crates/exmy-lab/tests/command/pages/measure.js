// Lays each page out in frames and leaves what was measured in the title of this document, as JSON.
// In PAGES, WIDTHS and AXE the test puts the pages, the widths, and the source of axe-core or nothing.
const laid = (page, width, script) => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-same-origin" + (script ? " allow-scripts" : "");
  frame.style = `border:0;width:${width}px;height:900px`;
  frame.onload = () => done(frame);
  frame.srcdoc = PAGES[page];
  document.body.append(frame);
});

// Sizes of text in pictures, in pixels.
const sizes = (view, root) => [...root.querySelectorAll("svg.exmy")].flatMap(svg => {
  const unit = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return [...svg.querySelectorAll("text")].filter(text => text.textContent.trim())
    .map(text => parseFloat(view.getComputedStyle(text).fontSize) * unit).filter(size => size > 0);
});

// How much wider the widest picture of a row is than the narrowest one, at most.
const unequal = root => Math.max(1, ...[...root.querySelectorAll(".grid")].map(grid => {
  const wide = [...grid.querySelectorAll(":scope > figure > svg.exmy")].map(svg => svg.getBoundingClientRect().width);
  return wide.length ? Math.max(...wide) / Math.min(...wide) : 1;
}));

// What a reader does: sorts a table, hides a line, smooths, looks at values, zooms, asks for tokens.
const used = (view, root) => {
  const found = {};
  const sort = [...root.querySelectorAll("th button")].find(button => button.textContent.includes("val loss"));
  if (sort) {
    const column = sort.parentElement.cellIndex;
    const cells = () => [...sort.closest("table").tBodies[0].rows].map(row => parseFloat(row.cells[column].textContent));
    sort.click();
    const up = cells();
    sort.click();
    found.sorted = up.every((x, i) => !i || up[i - 1] <= x) && cells().every((x, i) => x === up[up.length - 1 - i])
      && sort.parentElement.getAttribute("aria-sort") === "descending";
  }
  const svg = [...root.querySelectorAll("figure > svg.exmy")].find(one => one.dataset.tokens);
  if (!svg) return found;
  const line = () => [...svg.querySelectorAll("path.l")].find(one => one.querySelector("title"));
  const [before, tools] = [line().getAttribute("d"), svg.parentElement.querySelector(".tools")];
  const [box, slider, tokens] = ["checkbox", "range", "checkbox"].map((kind, i) => {
    const all = tools.querySelectorAll(`input[type=${kind}]`);
    return all[i === 2 ? all.length - 1 : 0];
  });
  const name = box.parentElement.textContent.trim();
  const own = () => [...svg.querySelectorAll("path.l")].filter(one => one.querySelector("title")?.textContent === name);
  box.click();
  found.hidden = own().length > 0 && own().every(one => view.getComputedStyle(one).display === "none");
  box.click();
  found.back = own().every(one => view.getComputedStyle(one).display !== "none");
  slider.value = .9;
  slider.dispatchEvent(new view.Event("input"));
  found.smoothed = line().getAttribute("d") !== before;
  slider.value = slider.max;
  slider.dispatchEvent(new view.Event("input"));
  const places = path => [...path.getAttribute("d").matchAll(/[ML](\S+) ([^MLZ]+)/g)].map(part => [+part[1], +part[2]]);
  found.within = [...svg.querySelectorAll("path.b:has(title)")].every(band => {
    const ring = places(band), name = band.querySelector("title").textContent;
    const inside = ([x, y]) => {
      const near = ring.filter(place => Math.abs(place[0] - x) < 1).map(place => place[1]);
      return near.length < 2 || Math.min(...near) - 1 <= y && y <= Math.max(...near) + 1;
    };
    return [...band.parentElement.querySelectorAll("path.l")]
      .filter(path => path.querySelector("title")?.textContent === name).every(path => places(path).every(inside));
  });
  slider.value = 0;
  slider.dispatchEvent(new view.Event("input"));
  found.restored = line().getAttribute("d") === before;
  const labels = () => [...svg.querySelectorAll("text")].filter(one => view.getComputedStyle(one).display !== "none")
    .map(one => one.textContent);
  tokens.click();
  found.tokens = labels().includes("tokens") && !labels().includes("step");
  tokens.click();
  const [, , , from, to] = svg.querySelector("g.panel").dataset.x.split(" ").map(Number);
  const [, , , low, high] = svg.querySelector("g.panel").dataset.y.split(" ").map(Number);
  const at = (type, part) => {
    const point = new view.DOMPoint(from + part * (to - from), (low + high) / 2).matrixTransform(svg.getScreenCTM());
    svg.dispatchEvent(new view.PointerEvent(type, { clientX: point.x, clientY: point.y, pointerType: "mouse" }));
  };
  at("pointermove", .5);
  const tip = svg.parentElement.querySelector(".tip");
  found.tip = !tip.classList.contains("gone") && tip.textContent;
  const ticks = labels().join();
  at("pointerdown", .25);
  at("pointermove", .75);
  at("pointerup", .75);
  found.zoomed = labels().join() !== ticks && line().getAttribute("d") !== before;
  tools.querySelector("button").click();
  found.whole = labels().join() === ticks && line().getAttribute("d") === before;
  view.dispatchEvent(new view.Event("beforeprint"));
  found.printed = [...root.querySelectorAll("details:not(.tools)")]
    .every(one => one.open === !one.parentElement.closest("details"));
  return found;
};

(async () => {
  const found = [];
  for (let page = 0; page < PAGES.length; page++) for (const width of WIDTHS) for (const script of [true, false]) {
    const frame = await laid(page, width, script);
    const [view, root] = [frame.contentWindow, frame.contentDocument];
    const one = { page, width, script, dark: view.matchMedia("(prefers-color-scheme: dark)").matches,
      wide: root.documentElement.scrollWidth, text: Math.min(99, ...sizes(view, root)), unequal: unequal(root), violations: [],
      read: root.querySelector("main").innerText.replace(/\s+/g, " ").length, background: view.getComputedStyle(root.body).backgroundColor };
    if (script && AXE) {
      const node = root.createElement("script");
      node.textContent = AXE;
      root.head.append(node);
      const result = await view.axe.run(root);
      one.violations = result.violations.map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(" | ")}`);
    }
    one.used = script ? used(view, root) : {};
    found.push(one);
    frame.remove();
  }
  document.title = JSON.stringify(found);
})().catch(error => { document.title = "failed: " + error.stack; });
