// What all pictures have in common: their colours and options, and when they are drawn anew.
"use strict";
(() => {
  const EVERY = 5000; // milliseconds between two looks at what goes on

  // What the stylesheet makes of the colours of a class, light or dark, and not forced ones.
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

  // Calls a function some time after it was asked to, however often, and not while nobody looks.
  const gathered = (call) => {
    let timer = null;
    return () => {
      timer ??= setTimeout(() => {
        timer = null;
        if (!document.hidden) call();
      }, EVERY);
    };
  };
  // Draws now, and again when the page or its colours may have changed.
  const keepDrawn = (redraw, { changed = gathered(redraw), recoloured = redraw } = {}) => {
    document.body.addEventListener("edt:changed", changed);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recoloured);
    redraw();
  };

  window.edtPictures = { axis, common, gathered, keepDrawn, legend, open, palette, rounded };
})();
