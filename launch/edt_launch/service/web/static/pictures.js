// What all pictures have in common: their colours, and what they are zoomed to.
"use strict";
(() => {
  // What the stylesheet makes of the colours of a class, light or dark, and not forced ones.
  window.edtColour = (name) => {
    const probe = document.body.appendChild(Object.assign(document.createElement("span"), { className: `${name} unforced` }));
    const { backgroundColor, color } = getComputedStyle(probe);
    probe.remove();
    return { fill: backgroundColor, text: color };
  };

  // A time of day as the page's text has it.
  window.edtClock = (milliseconds) => `${new Date(milliseconds).toISOString().slice(11, 19)} UTC`;

  // What a picture is zoomed to, to be kept when it is drawn anew; its end is kept at the end.
  window.edtZoom = (chart) => {
    const zoom = chart.getOption()?.dataZoom?.[0];
    if (!zoom || (zoom.start === 0 && zoom.end === 100)) return {};
    return { startValue: zoom.startValue, ...(zoom.end === 100 ? { end: 100 } : { endValue: zoom.endValue }) };
  };

  // Buttons that zoom and move a picture: each says what it does to its start and its end, in percents.
  const STEPS = {
    in: (start, end) => [start + (end - start) / 4, end - (end - start) / 4],
    out: (start, end) => [start - (end - start) / 2, end + (end - start) / 2],
    earlier: (start, end) => [start - (end - start) / 2, end - (end - start) / 2],
    later: (start, end) => [start + (end - start) / 2, end + (end - start) / 2],
    all: () => [0, 100],
  };
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("button[data-zoom]");
    const chart = button && echarts.getInstanceByDom(document.getElementById(button.dataset.of));
    if (!chart) return;
    const shown = chart.getOption().dataZoom[0];
    const [start, end] = STEPS[button.dataset.zoom](shown.start, shown.end);
    const shift = Math.max(0, -start) - Math.max(0, end - 100); // the width stays when an end is reached
    chart.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: Math.max(0, start + shift), end: Math.min(100, end + shift) });
  });
})();
