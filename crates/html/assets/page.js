"use strict";
(() => {
  const root = document.documentElement;

  // The theme: that of the system until somebody chooses one.
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; show(); });
  system.addEventListener("change", show);
  button.hidden = false;
  show();

  // Paper has no summary to open: every figure, and what each finding means and advises, is printed too.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(".about details:not([open]), .more:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });

  const digits = (value) => {
    const size = Math.abs(value);
    if (value === 0) return "0";
    if (size >= 1000) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(4)));
  };
  const named = (axis, value) => {
    const tick = axis.ticks.find((one) => one.at === value);
    if (tick) return tick.label;
    if (axis.share) return `${Number((100 - 100 / value).toPrecision(6))}%`;
    return axis.unit ? `${digits(value)} ${axis.unit}` : digits(value);
  };

  for (const plot of document.querySelectorAll(".plot")) {
    const data = JSON.parse(plot.parentElement.querySelector("script").textContent);
    const tip = plot.querySelector(".tip");
    const drawings = [...plot.querySelectorAll("svg")].map(reading);
    let at = null;

    // Where values lie on a drawing, in its own pixels.
    function reading(svg) {
      const numbers = (name) => svg.dataset[name].split(" ").map(Number);
      const [left, top, right, bottom] = numbers("area");
      const place = (axis, [low, high], begin, end) => (value) => {
        const share = axis.log
          ? Math.log(Math.max(value, low) / low) / Math.log(high / low)
          : (value - low) / (high - low);
        return begin + share * (end - begin);
      };
      const x = place(data.x, numbers("x"), left, right);
      const y = data.rows ? place(data.y, numbers("y"), top, bottom) : place(data.y, numbers("y"), bottom, top);
      const yRight = data.right && place(data.right, numbers("right"), bottom, top);
      return { svg, x, y, yRight, bars: numbers("bars"), row: data.rows ? (bottom - top) / data.y.ticks.length : 0 };
    }

    const visible = () => drawings.find((one) => one.svg.getClientRects().length > 0) || drawings[0];

    // The middle of a mark, and of a bar the middle of its end.
    function middle(drawing, [index, item]) {
      const series = data.series[index];
      const [begin, end] = drawing.bars;
      let y = (series.right ? drawing.yRight : drawing.y)(series.y[item]);
      if (series.slot) y += drawing.row * (begin + (end - begin) * (series.slot[0] + 0.43) / series.slot[1]);
      return [drawing.x(series.x[item]), y];
    }

    function distance(drawing, series, index, item, x, y) {
      const [mx, my] = middle(drawing, [index, item]);
      if (!series.slot) return Math.hypot(mx - x, my - y);
      const begin = drawing.x(series.from[item]);
      const across = x < begin ? begin - x : x > mx ? x - mx : 0;
      return Math.hypot(across, (my - y) * 3);
    }

    function nearest(drawing, x, y) {
      let best = Infinity, found = null;
      data.series.forEach((series, index) => {
        for (let item = 0; item < series.x.length; item++) {
          const far = distance(drawing, series, index, item, x, y);
          if (far < best) { best = far; found = [index, item]; }
        }
      });
      return best < 60 ? found : null;
    }

    function words([index, item]) {
      const series = data.series[index];
      const x = series.x[item], y = series.y[item];
      const axis = data.rows ? data.x : series.right ? data.right : data.y;
      const lines = data.rows
        ? [named(data.y, y), series.name]
        : [series.name, `${data.x.label}: ${named(data.x, x)}`];
      if (series.labels) {
        lines.push(series.labels[item]);
      } else if (series.slot && series.from[item] > 0) {
        lines.push(`${named(axis, x - series.from[item])}, ends at ${named(axis, x)}`);
      } else {
        lines.push(`${axis.label}: ${named(axis, data.rows ? x : y)}`);
      }
      const ends = (series.range || series.interval || [])[item];
      const what = series.range ? "range" : "95% interval";
      if (ends && !series.labels) lines.push(`${what}: ${digits(ends[0])} to ${named(axis, ends[1])}`);
      return lines.join("\n");
    }

    function mark() {
      for (const old of plot.querySelectorAll(".hit")) old.remove();
      tip.hidden = at === null;
      if (at === null) return;
      const drawing = visible();
      const [x, y] = middle(drawing, at);
      const ring = document.createElementNS(drawing.svg.namespaceURI, "circle");
      ring.setAttribute("class", "hit");
      ring.setAttribute("cx", x);
      ring.setAttribute("cy", y);
      ring.setAttribute("r", 6);
      drawing.svg.append(ring);
      tip.textContent = words(at);
      const scale = drawing.svg.clientWidth / drawing.svg.viewBox.baseVal.width;
      const room = plot.clientWidth - tip.offsetWidth;
      const above = y * scale - tip.offsetHeight - 12;
      tip.style.left = `${Math.max(0, Math.min(room, x * scale + 12))}px`;
      tip.style.top = `${above > 0 ? above : y * scale + 14}px`;
    }

    function follow(event) {
      const drawing = visible();
      const box = drawing.svg.getBoundingClientRect();
      const scale = drawing.svg.viewBox.baseVal.width / box.width;
      at = nearest(drawing, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
      mark();
    }
    plot.addEventListener("pointermove", follow);
    plot.addEventListener("pointerdown", follow);
    // A finger leaves whenever it is lifted; its value stays until another place is tapped.
    plot.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") { at = null; mark(); }
    });
    plot.addEventListener("blur", () => { at = null; mark(); });
    plot.addEventListener("keydown", (event) => {
      const along = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key] || 0;
      const across = { ArrowDown: 1, ArrowUp: -1 }[event.key] || 0;
      if (event.key === "Escape") { at = null; mark(); return; }
      if (!along && !across) return;
      event.preventDefault();
      const filled = data.series.map((_, index) => index).filter((index) => data.series[index].x.length > 0);
      // The first key shows the first value, End the last.
      const [series, item] = at || [filled[0], along > 0 && along < Infinity ? -1 : 0];
      const place = filled.indexOf(series) + (at ? across : 0);
      const index = filled[(place + filled.length) % filled.length];
      at = [index, Math.max(0, Math.min(data.series[index].x.length - 1, item + along))];
      mark();
    });
  }
})();
