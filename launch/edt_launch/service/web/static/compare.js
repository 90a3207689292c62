// Draws a value of several runs over each other.
"use strict";
(() => {
  const { axis, common, dataZoom, draw, keepDrawn, legend, palette, points, positions } = edtPictures;
  const { TIMES, rounded, smoothed } = edtPictures;
  const place = document.getElementById("curves");
  const DASHES = ["solid", "dashed", "dotted"];

  const curve = (run, { x, labels, smooth, log }, number, hues) => {
    const color = hues[number % hues.length].fill;
    const type = DASHES[Math.floor(number / hues.length)];
    const values = run.values.map((value) => (log === "1" && value <= 0 ? null : value));
    const line = points(positions(run, x), values, run.gaps);
    const label = JSON.parse(labels)[run.job];
    return {
      type: "line",
      name: `${run.name}${label ? `: ${label}` : ""} (${run.job})`,
      showSymbol: line.length === 1,
      data: +smooth ? smoothed(line, +smooth) : line,
      lineStyle: { color, type, width: 2 },
      itemStyle: { color },
    };
  };

  const options = ({ name, series }, view) => {
    const { x, log } = view;
    const colours = palette();
    return {
      ...common(colours),
      legend: legend(colours),
      tooltip: { trigger: "axis", renderMode: "richText", valueFormatter: (value) => rounded(value) },
      dataZoom: dataZoom(colours, { height: 20, bottom: 4 }),
      grid: { left: 64, right: 20, top: 56, bottom: 64, outerBoundsMode: "none" },
      xAxis: {
        type: x === "clock" ? "time" : "value",
        min: "dataMin",
        max: "dataMax",
        name: x === "training" ? "seconds of training" : "",
        ...axis(colours),
        ...(x === "clock" ? { axisLabel: { ...axis(colours).axisLabel, formatter: TIMES } } : {}),
      },
      yAxis: { type: log === "1" ? "log" : "value", scale: true, name, ...axis(colours) },
      series: series.map((run, number) => curve(run, view, number, colours.hues)),
    };
  };

  // Runs come and go, and with them what is to be drawn.
  const wanted = () => document.getElementById("compared").dataset;
  let drawn = null;
  const redraw = async () => {
    const { url } = wanted();
    drawn = url;
    const data = url ? await edtFetchJson(url) : { series: [] };
    if (data === null) return; // the picture stays
    place.hidden = data.series.every((run) => run.time.length === 0);
    if (place.hidden) return;
    draw(place, options(data, wanted()));
    place.dataset.curves = data.series.length;
  };
  document.addEventListener("htmx:after:swap", () => {
    if (wanted().url !== drawn) redraw();
  });
  keepDrawn(redraw);
})();
