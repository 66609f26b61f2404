// Shows the page and draws it anew when it has changed, where the reader was: the new one is loaded unseen,
// scrolled and unfolded as the old one is, and takes its place.
"use strict";
const frames = document.getElementById("frames");
const state = document.getElementById("state");
const pause = document.getElementById("pause");
let shown = null, stamp = null, loading = false, paused = false, touched = 0;

// What the reader is doing in the page is not interrupted.
const BUSY = 1500, EVERY = 2000;

function say(text, off) {
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("off", Boolean(off));
}

function unfolded(page) {
  return [...page.querySelectorAll("details")];
}

function carry(from, to) {
  const open = unfolded(from.document).filter((part) => part.open);
  const names = new Set(open.map((part) => part.firstElementChild.textContent));
  for (const part of unfolded(to.document)) {
    if (names.has(part.firstElementChild.textContent)) part.open = true;
  }
  to.scrollTo(from.scrollX, from.scrollY);
}

function load(wanted) {
  loading = true;
  const next = document.createElement("iframe");
  next.title = "report";
  next.className = "next";
  next.src = "/page";
  next.addEventListener("load", () => {
    const page = next.contentWindow;
    if (shown) {
      const focused = document.activeElement === shown;
      carry(shown.contentWindow, page);
      shown.remove();
      if (focused) next.focus();
    }
    for (const kind of ["pointermove", "pointerdown", "keydown", "wheel"]) {
      page.addEventListener(kind, () => { touched = performance.now(); }, { passive: true });
    }
    next.className = "";
    [shown, stamp, loading] = [next, wanted, false];
    document.title = page.document.title;
    say("Live, as of " + new Date().toLocaleTimeString());
  });
  frames.append(next);
}

async function look() {
  if (loading || paused || document.hidden) return;
  try {
    const answer = await fetch("/state", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const wanted = await answer.text();
    if (wanted !== stamp && performance.now() - touched > BUSY) load(wanted);
    else if (state.classList.contains("off")) say("Live");
  } catch {
    say("Not live any more: the program has ended", true);
  }
}

pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.textContent = paused ? "Go on" : "Pause";
  say(paused ? "Paused" : "Live");
  look();
});
touched = -BUSY;
look();
setInterval(look, EVERY);
document.addEventListener("visibilitychange", look);
