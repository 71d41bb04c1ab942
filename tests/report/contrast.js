// Text against the nearest background below it: 4.5 to 1, or 3 to 1 where it is large (WCAG AA). Lists what has less.
() => {
  const rgb = t => t.match(/[\d.]+/g).map(Number);
  const linear = v => v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const bad = new Set();
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e);
    if (!e.getClientRects().length || style.visibility === "hidden") continue;
    let back = [255, 255, 255];
    for (let under = e; under; under = under.parentElement) {
      back = rgb(getComputedStyle(under).backgroundColor);
      if (back.length < 4 || back[3] > 0) break;
    }
    const front = rgb(e.closest("svg") ? style.fill : style.color);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) bad.add(`${e.tagName} ${front} on ${back}`);
  }
  return [...bad];
}
