// Draws a job's course: what it reports, its throughput and its size, over one axis; resizes are lines.
"use strict";
(() => {
  const { WHERE, axis, clock, common, draw, duration, gathered, heightsOf, keepDrawn, palette } = edtPictures;
  const { panels, points, positions, rounded, smoothed } = edtPictures;
  const LABEL = 44; // pixels for what is written at a mark
  const LOWER = [80, 70]; // pixels: the heights of the panels of throughput and size
  const LINE = { type: "line", showSymbol: false, animation: false };

  const describe = ({ from, to, start, end, reason }) => {
    const what = from === null ? `restarted with ${to}` : `${from}→${to} workers`;
    const pause = duration(+(end - start).toPrecision(3));
    return `${what}: no step for ${pause}, until ${clock(1000 * end)}${reason ? `\n${reason}` : ""}`;
  };

  // What is to be drawn: the data, and what was chosen in the form above the plots.
  const chosen = ({ x, url, log, smooth }, data) => ({
    data,
    x,
    xs: positions(data, x),
    isClock: x === "clock",
    isLog: log === "1",
    names: new URLSearchParams(url.split("?")[1]).getAll("name"),
    weight: +smooth,
    colours: palette(),
  });
  const endOf = ({ x, isClock }, pause) => (isClock ? 1000 * pause.end : pause[x]);

  // Whether the label of a pause would cover that of the one before.
  const isCrowded = (view, number) => {
    if (number === 0) return false;
    const [before, at] = [number - 1, number].map((one) => endOf(view, view.data.pauses[one]));
    return ((at - before) / (view.xs.at(-1) - view.xs[0])) * place.clientWidth < LABEL;
  };
  const marks = (view, isLabelled) => ({
    symbol: "none",
    lineStyle: { color: view.colours.text, type: "dotted", opacity: 0.6 },
    label: { show: isLabelled, formatter: ({ data }) => data.name, color: view.colours.text, fontSize: 10 },
    tooltip: { trigger: "item", formatter: ({ data }) => data.description },
    data: view.data.pauses.map((pause, number) => ({
      xAxis: endOf(view, pause),
      name: isCrowded(view, number) ? "" : pause.from === null ? "start" : `${pause.from}→${pause.to}`,
      description: describe(pause),
    })),
  });
  const bands = ({ data, colours }) => ({
    silent: true,
    itemStyle: { color: colours.idle.fill, opacity: 0.5 },
    data: data.pauses.map(({ start, end }) => [{ xAxis: 1000 * start }, { xAxis: 1000 * end }]),
  });

  // Over the clock, a line has a gap where the job was started anew.
  const broken = ({ data, isClock }, line) => {
    if (!isClock) return line;
    const starts = data.pauses.filter(({ from }) => from === null);
    const gaps = starts.map(({ start }) => [1000 * start + 1, null]);
    return [...line, ...gaps].sort(([one], [other]) => one - other);
  };
  const valueSeries = (view, name, number) => {
    const { data, xs, isLog, weight, colours } = view;
    const color = colours.hues[number % colours.hues.length].fill;
    const values = data.values[name].map((value) => (isLog && value <= 0 ? null : value));
    const line = broken(view, points(xs, values, data.gaps[name]));
    const raw = { ...LINE, showSymbol: line.length === 1, name, data: line, lineStyle: { color, width: 2 }, itemStyle: { color } };
    if (!weight) return [raw];
    const smooth = { ...raw, name: `${name}, smoothed`, data: smoothed(line, weight) };
    return [{ ...raw, lineStyle: { color, width: 1, opacity: 0.35 } }, smooth];
  };
  const throughputSeries = (view) => {
    const { data, xs, colours } = view;
    const color = colours.hues[4].fill;
    const line = data.throughput.map((value, row) => [xs[row], value]);
    return { ...LINE, name: "steps/s", data: broken(view, line), lineStyle: { color }, itemStyle: { color } };
  };
  // Every size is in the pauses, however few points are left of the rest; nobody trains in a start anew.
  const sizeSeries = (view) => {
    const { data, xs, isClock, colours } = view;
    const color = colours.hues[0].fill;
    const first = data.pauses[0]?.start ?? Infinity;
    const before = data.size.map((size, row) => [xs[row], size]).filter((_, row) => data.time[row] < first);
    const during = data.pauses.flatMap((pause) => {
      const after = [endOf(view, pause), pause.to];
      return isClock ? [[1000 * pause.start, pause.from ?? 0], after] : [after];
    });
    return {
      ...LINE,
      name: "workers",
      step: "end",
      data: [...before, ...during, [xs.at(-1), data.size.at(-1)]],
      lineStyle: { color },
      itemStyle: { color },
      areaStyle: { color, opacity: 0.15 },
    };
  };
  // The panels from above: one for each value, then throughput and size.
  const allSeries = (view) => {
    const all = [...view.names.map((name, number) => valueSeries(view, name, number)), [throughputSeries(view)], [sizeSeries(view)]];
    return all.flatMap(([first, ...rest], index) => {
      const at = { xAxisIndex: index, yAxisIndex: index };
      const markArea = view.isClock ? bands(view) : undefined;
      return [{ ...first, ...at, markLine: marks(view, index === 0), markArea }, ...rest.map((one) => ({ ...one, ...at }))];
    });
  };

  const yAxes = ({ isLog, names, colours }) =>
    [
      ...names.map((name) => ({ type: isLog ? "log" : "value", scale: true, name })),
      { type: "value", name: "steps/s", splitNumber: 2 },
      { type: "value", name: "workers", minInterval: 1, min: 0, splitNumber: 2 },
    ].map((one, gridIndex) => ({ ...axis(colours), ...one, gridIndex }));
  // What each line has under the pointer: a size holds from its point on, other values are at the nearest point.
  const tooltip = ({ x }, series) => (shown) => {
    const at = shown[0].axisValue;
    const sizes = series.at(-1).data;
    const lines = shown.map(({ seriesName, value, marker }) => {
      const size = seriesName === "workers" && sizes.findLast(([from]) => from <= at);
      return `${marker}${seriesName} ${rounded(size ? size[1] : value[1])}`;
    });
    return [WHERE[x](at), ...lines].join("\n");
  };
  const options = (view) => {
    const series = allSeries(view);
    const [shared, height] = panels([...heightsOf(view.names), ...LOWER], { ...view, series });
    const shown = {
      ...common(view.colours),
      tooltip: { trigger: "axis", renderMode: "richText", formatter: tooltip(view, series) },
      ...shared,
      yAxis: yAxes(view),
      series,
    };
    return [shown, height];
  };

  let place = document.getElementById("plots");
  const redraw = async () => {
    if (!place) return;
    const data = await edtFetchJson(place.dataset.url);
    if (data === null) return; // the picture stays
    place.hidden = data.time.length === 0;
    document.getElementById("plots-key").hidden = place.hidden;
    if (place.hidden) return;
    const [shown, height] = options(chosen(place.dataset, data));
    place.style.height = `${height}px`;
    draw(place, shown);
    place.dataset.points = data.time.length;
  };
  const changed = gathered(redraw);
  document.body.addEventListener("edt:jobs", ({ detail }) => {
    if (detail.has(place?.closest("[data-job]").dataset.job)) changed();
  });
  // Before anything has been reported, the page has no place for it.
  document.addEventListener("htmx:after:swap", () => {
    const found = document.getElementById("plots");
    if (!found || found === place) return;
    place = found;
    redraw();
  });
  keepDrawn(redraw, { changed });
})();
