// Draws a value of several runs over each other.
"use strict";
(() => {
  const { axis, common, dataZoom, draw, keepDrawn, legend, palette, points, positions, rounded } = edtPictures;
  const place = document.getElementById("curves");
  const DASHES = ["solid", "dashed", "dotted"];

  const curve = (run, x, number, hues) => {
    const color = hues[number % hues.length].fill;
    const type = DASHES[Math.floor(number / hues.length)];
    return {
      type: "line",
      name: `${run.job} ${run.name}`,
      showSymbol: false,
      data: points(positions(run, x), run.values, run.gaps),
      lineStyle: { color, type, width: 2 },
      itemStyle: { color },
    };
  };

  const options = ({ name, series }, x) => {
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
      },
      yAxis: { type: "value", scale: true, name, ...axis(colours) },
      series: series.map((run, number) => curve(run, x, number, colours.hues)),
    };
  };

  // Runs come and go, and with them what is to be drawn.
  const wanted = () => document.getElementById("compared").dataset;
  let drawn = null;
  const redraw = async () => {
    const { url, x } = wanted();
    drawn = url;
    const data = url ? await edtFetchJson(url) : { series: [] };
    if (data === null) return; // the picture stays
    place.hidden = data.series.every((run) => run.time.length === 0);
    if (place.hidden) return;
    draw(place, options(data, x));
    place.dataset.curves = data.series.length;
  };
  document.addEventListener("htmx:after:swap", () => {
    if (wanted().url !== drawn) redraw();
  });
  keepDrawn(redraw);
})();
