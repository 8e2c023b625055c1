//! Contrast as WCAG 2.1 defines it, computed in the page from the colours that the browser gives each element.

/// An expression whose value has the number of `texts` and of `lines` that were looked at, and those that are `faint`: text below 4.5
/// (3 where it is large), and what is drawn in a colour of a series below 3.
pub(crate) const SCRIPT: &str = r"(() => {
  const numbers = (color) => (color.match(/[\d.]+/g) || []).map(Number);
  const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const contrast = (one, other) => {
    const [a, b] = [luminance(one), luminance(other)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = numbers(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
      if (color[3] > 0) throw new Error('a background that one sees through');
    }
    return [255, 255, 255];
  };
  const seen = { texts: 0, lines: 0, faint: [] };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const one = node.parentElement;
    if (!node.data.trim() || !one.getClientRects().length || one.closest('script, style')) continue;
    const style = getComputedStyle(one), size = parseFloat(style.fontSize);
    const color = numbers(one.closest('svg') ? style.fill : style.color);
    const wanted = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const ratio = contrast(color, behind(one));
    seen.texts += 1;
    if (ratio < wanted) seen.faint.push(`${ratio.toFixed(2)}: ${node.data.trim()}`);
  }
  for (const one of document.querySelectorAll('svg .line, svg .dot, svg .area')) {
    if (one.matches('.grid, .ground') || !one.getClientRects().length) continue;
    const ratio = contrast(numbers(getComputedStyle(one).color), behind(one.closest('figure')));
    seen.lines += 1;
    if (ratio < 3) seen.faint.push(`${ratio.toFixed(2)}: ${one.getAttribute('class')}`);
  }
  return seen;
})()";
