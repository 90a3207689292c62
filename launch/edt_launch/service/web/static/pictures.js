// What pictures have in common: colours, options, and when they are drawn anew.
"use strict";
(() => {
  const EVERY = 5000; // milliseconds from one drawing to the next, at least

  // The colours that the stylesheet gives a class, none of them forced.
  const colour = (name) => {
    const probe = Object.assign(document.createElement("span"), { className: `${name} unforced` });
    document.body.append(probe);
    const { backgroundColor, color } = getComputedStyle(probe);
    probe.remove();
    return { fill: backgroundColor, text: color };
  };
  const palette = () => {
    const { backgroundColor, color } = getComputedStyle(document.body);
    return {
      background: backgroundColor,
      text: color,
      line: colour("line-colour").fill,
      bad: colour("bad-colour").fill,
      idle: colour("idle"),
      hues: [...Array(8).keys()].map((hue) => colour(`hue-${hue}`)),
    };
  };

  const rounded = (value, digits = 5) => (typeof value === "number" ? +value.toPrecision(digits) : value);

  const common = ({ text }) => ({
    animation: false,
    useUTC: true,
    textStyle: { fontFamily: "system-ui, sans-serif", color: text },
    aria: { enabled: true, label: { enabled: false } },
  });
  const legend = ({ text }) => ({
    top: 0,
    type: "scroll",
    textStyle: { color: text },
    pageTextStyle: { color: text },
  });
  // Midnight is a date, not the number of a day.
  const TIMES = { day: "{MMM} {d}", hour: "{HH}:{mm}", minute: "{HH}:{mm}", second: "{HH}:{mm}:{ss}" };
  const axis = ({ text, line }, opacity = 0.6, align = "left") => ({
    nameTextStyle: { color: text, align },
    axisLabel: { color: text, hideOverlap: true },
    axisLine: { lineStyle: { color: line } },
    splitLine: { lineStyle: { color: line, opacity } },
  });

  const charts = new Set();
  const open = (place) => {
    const chart = echarts.getInstanceByDom(place) ?? echarts.init(place, null, { renderer: "canvas" });
    charts.add(chart);
    return chart;
  };
  addEventListener("resize", () => charts.forEach((chart) => chart.resize()));

  // Calls a function when asked to, but no more often than that, nor while nobody looks.
  const gathered = (call) => {
    let timer = null;
    let next = 0;
    return () => {
      timer ??= setTimeout(() => {
        timer = null;
        next = Date.now() + EVERY;
        if (!document.hidden) call();
      }, next - Date.now());
    };
  };
  // Draws now, and again when the page or its colours may have changed.
  const keepDrawn = (redraw, { changed = gathered(redraw), recoloured = redraw } = {}) => {
    document.body.addEventListener("edt:changed", changed);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recoloured);
    redraw();
  };

  window.edtPictures = { TIMES, axis, common, gathered, keepDrawn, legend, open, palette, rounded };
})();
