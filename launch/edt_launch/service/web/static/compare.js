// Draws values of several runs over each other: a panel for each value, over one axis.
"use strict";
(() => {
  const { axis, common, draw, heightsOf, keepDrawn, legend, palette, panels, points, positions } = edtPictures;
  const { WHERE, rounded, smoothed } = edtPictures;
  const ABOVE = 24; // pixels for the legend
  const DASHES = ["solid", "dashed", "dotted"];
  const place = document.getElementById("curves");
  const key = document.getElementById("curves-key");

  // What is to be drawn: the data, and what was chosen in the form above.
  const chosen = ({ x, url, labels, log, smooth }, { name, series }) => ({
    runs: series,
    // The values of the first name are a run's own.
    valuesOf: (run, other) => (other === name ? run : run.others[other]),
    x,
    names: new URLSearchParams(url.split("?")[1]).getAll("name"),
    labels: JSON.parse(labels),
    isLog: log === "1",
    weight: +smooth,
    colours: palette(),
  });
  const curve = (run, name, number, panel, { x, labels, isLog, weight, colours, valuesOf }) => {
    const { hues } = colours;
    const color = hues[number % hues.length].fill;
    const type = DASHES[Math.floor(number / hues.length)];
    const { values, gaps } = valuesOf(run, name);
    const line = points(positions(run, x), values.map((value) => (isLog && value <= 0 ? null : value)), gaps);
    const label = labels[run.job];
    return {
      type: "line",
      xAxisIndex: panel,
      yAxisIndex: panel,
      name: `${run.name}${label ? `: ${label}` : ""} (${run.job})`,
      showSymbol: line.length === 1,
      data: weight ? smoothed(line, weight) : line,
      lineStyle: { color, type, width: 2 },
      itemStyle: { color },
    };
  };

  // The tooltip is of the panel that the pointer is in.
  let pointer = 0;
  place.addEventListener("mousemove", ({ offsetY }) => (pointer = offsetY), true);
  const tooltip = ({ x, names }, grids) => (shown) => {
    const below = grids.findIndex(({ top, height }) => pointer <= top + height);
    const panel = below < 0 ? grids.length - 1 : below;
    const lines = shown
      .filter(({ axisIndex }) => axisIndex === panel)
      .map(({ marker, seriesName, value }) => `${marker}${seriesName} ${rounded(value[1])}`);
    return [`${names[panel]}, ${WHERE[x](shown[0].axisValue)}`, ...lines].join("\n");
  };

  const options = (view) => {
    const { runs, names, isLog, colours } = view;
    const series = names.flatMap((name, panel) => runs.map((run, number) => curve(run, name, number, panel, view)));
    const [shared, height] = panels(heightsOf(names), { ...view, above: ABOVE, series });
    const y = { type: isLog ? "log" : "value", scale: true, ...axis(colours) };
    const shown = {
      ...common(colours),
      legend: legend(colours),
      tooltip: { trigger: "axis", renderMode: "richText", formatter: tooltip(view, shared.grid) },
      ...shared,
      yAxis: names.map((name, gridIndex) => ({ ...y, name, gridIndex })),
      series,
    };
    return [shown, height];
  };

  // Runs come and go, and with them what is to be drawn.
  const wanted = () => document.getElementById("compared").dataset;
  let drawn = null;
  const redraw = async () => {
    const { url } = wanted();
    drawn = url;
    const data = url ? await edtFetchJson(url) : { series: [] };
    if (data === null) return; // the picture stays
    place.hidden = key.hidden = data.series.every((run) => run.time.length === 0);
    if (place.hidden) return;
    const view = chosen({ ...wanted(), url }, data);
    const [shown, height] = options(view);
    place.style.height = `${height}px`;
    draw(place, shown);
    place.dataset.curves = view.runs.length;
    place.dataset.panels = view.names.length;
  };
  document.addEventListener("htmx:after:swap", () => {
    if (wanted().url !== drawn) redraw();
  });
  keepDrawn(redraw);
})();
