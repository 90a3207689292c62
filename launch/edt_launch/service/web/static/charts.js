// Draws who had which device when: a row a device, a bar for each job that had it.
"use strict";
(() => {
  const place = document.getElementById("chart");
  if (!place) return;
  const HUES = 8, ROW = 26, LEAST_ROW = 9, TALLEST = 2600, ABOVE = 150, AROUND = 96;
  let chart = null;

  const letter = (number) => String.fromCharCode(65 + ((number + 25) % 26));
  const clock = (seconds) => edtClock(1000 * seconds);

  const wrapped = (text) => text.replace(/(.{40,60}) /g, "$1\n"); // the texts of tooltips are one line each

  const bar = (looks) => (params, api) => {
    const [left, middle] = api.coord([api.value(1), api.value(0)]);
    const right = api.coord([api.value(2), api.value(0)])[0];
    const height = api.size([0, 1])[1] * 0.72;
    const whole = { x: left, y: middle - height / 2, width: Math.max(1, right - left), height };
    const shape = echarts.graphic.clipRectByRect(whole, params.coordSys);
    const look = looks(api.value(3));
    return shape && {
      type: "rect", shape, style: { fill: look.fill },
      textContent: { style: { text: shape.width > 14 && height > 11 ? look.letter : "", fill: look.text, fontWeight: "bold" } },
      textConfig: { position: "inside" },
    };
  };

  // A host's part of time: as high as many of its devices were used.
  const band = (params, api) => {
    const [left, middle] = api.coord([api.value(1), api.value(0)]);
    const right = api.coord([api.value(2), api.value(0)])[0], whole = api.size([0, 1])[1] * 0.86;
    const height = whole * api.value(3);
    const shape = echarts.graphic.clipRectByRect({ x: left, y: middle + whole / 2 - height, width: Math.max(1, right - left), height }, params.coordSys);
    return shape && { type: "rect", shape, style: { fill: api.visual("color") } };
  };

  // Where something happened to a job: in the rows that it had then.
  const ticks = (data, events, told) => {
    const had = Map.groupBy(data.bars, ([, job]) => data.jobs[job]?.id);
    return events.flatMap((event) =>
      (had.get(event.job) ?? [])
        .filter(([, , from, to]) => from <= event.time && event.time <= to)
        .map(([row]) => ({ value: [row, 1000 * event.time], told: told(event) })));
  };
  const tick = (width) => (params, api) => {
    const [middle, row] = api.coord([api.value(1), api.value(0)]), height = api.size([0, 1])[1];
    const shape = echarts.graphic.clipRectByRect({ x: middle - width / 2, y: row - height / 2, width, height }, params.coordSys);
    return shape && { type: "rect", shape, style: { fill: api.visual("color") } };
  };

  const options = (data, zoom) => {
    const hues = [...Array(HUES).keys()].map((hue) => edtColour(`hue-${hue}`));
    const idle = edtColour("idle"), bad = edtColour("bad-colour").fill, text = getComputedStyle(document.body).color, line = edtColour("line-colour").fill;
    const look = (job) => {
      const one = data.jobs[job];
      return one ? { ...hues[one.number % HUES], letter: letter(one.number) } : { ...idle, letter: "" };
    };
    const isByHost = data.bands.length > 0, names = isByHost ? data.hosts.map((one) => one.host) : data.rows.map((row) => `${row.host} ${row.device}`);
    const total = data.hosts.reduce((sum, one) => sum + one.devices, 0);
    const told = ({ value, data: item, seriesName, seriesType }) => {
      if (item.told) return `${item.told}\n${clock(value[1] / 1000)}`;
      if (seriesName === "hosts") {
        const one = data.hosts[value[0]];
        return `${one.host}: ${+(value[3] * one.devices).toFixed(2)} of ${one.devices} devices used\n${clock(value[1] / 1000)} to ${clock(value[2] / 1000)}`;
      }
      if (seriesType !== "custom") return `${seriesName}: ${+value[1].toFixed(1)} devices`;
      const row = data.rows[value[0]], one = data.jobs[value[3]];
      const who = seriesName === "idle" ? "free while a job waited" : one ? `${one.name || one.id} of ${one.owner}` : "several jobs";
      const why = data.reasons[value[4]] ? `\n${wrapped(data.reasons[value[4]])}` : "";
      return `${row.host} ${row.device}: ${who}\n${clock(value[1] / 1000)} to ${clock(value[2] / 1000)}${why}`;
    };
    // The owners' devices, stacked, and where each would end with everybody's fair share.
    let ends = 0;
    const parts = data.owners.map(({ owner, share, use }, index) => {
      const opacity = [0.65, 0.35, 0.5, 0.2][index % 4], width = (data.until - data.since) / use.length;
      ends += share ?? 0;
      return {
        name: owner, type: "line", stack: "use", xAxisIndex: 0, yAxisIndex: 0, showSymbol: false, step: "start",
        lineStyle: { color: text, width: 1 }, itemStyle: { color: text, opacity }, areaStyle: { color: text, opacity },
        data: use.map((devices, part) => [1000 * (data.since + (part + 1) * width), devices]),
        markLine: { symbol: "none", silent: true, label: { show: false }, lineStyle: { color: text, type: "dashed", width: 2 }, data: share ? [{ yAxis: ends }] : [] },
      };
    });
    const called = new Map(data.jobs.map((one) => [one.id, one.name || one.id]));
    const marks = (name, width, color, events, says) => ({
      name, type: "custom", xAxisIndex: 1, yAxisIndex: 1, renderItem: tick(width), encode: { x: 1, y: 0 }, itemStyle: { color },
      data: isByHost ? [] : ticks(data, events, says),
    });
    const left = 24 + 8 * Math.min(24, Math.max(4, ...names.map((name) => name.length)));
    const axis = { axisLabel: { color: text }, axisLine: { lineStyle: { color: line } }, splitLine: { lineStyle: { color: line } } };
    return {
      animation: false,
      useUTC: true,
      textStyle: { fontFamily: "system-ui, sans-serif" },
      aria: { enabled: true, label: { enabled: false }, decal: { show: true } },
      tooltip: { renderMode: "richText", formatter: told },
      legend: { top: 0, left, textStyle: { color: text }, data: data.owners.map(({ owner }) => owner), type: "scroll", pageTextStyle: { color: text } },
      grid: [{ left, right: 16, top: 30, height: ABOVE - 50, outerBoundsMode: "none" }, { left, right: 16, top: ABOVE, bottom: AROUND - 16, outerBoundsMode: "none" }],
      dataZoom: ["inside", "slider"].map((type) => ({ ...zoom, type, xAxisIndex: [0, 1], filterMode: "weakFilter", height: 24, textStyle: { color: text } })),
      xAxis: [0, 1].map((gridIndex) => ({ gridIndex, type: "time", min: 1000 * data.since, max: 1000 * data.until, ...axis, axisLabel: { color: text, hideOverlap: true, show: gridIndex === 1 } })),
      yAxis: [
        { gridIndex: 0, type: "value", max: total || 1, interval: Math.ceil(total / 2) || 1, ...axis },
        { gridIndex: 1, type: "category", inverse: true, data: names, ...axis, axisLabel: { color: text, width: left - 16, overflow: "truncate" } },
      ],
      series: [
        ...parts,
        {
          name: "idle", type: "custom", xAxisIndex: 1, yAxisIndex: 1, renderItem: bar(() => ({ ...idle, letter: "" })), encode: { x: [1, 2], y: 0 },
          data: data.idle.map(([row, from, to]) => [row, 1000 * from, 1000 * to]),
        },
        {
          name: "hosts", type: "custom", xAxisIndex: 1, yAxisIndex: 1, renderItem: band, encode: { x: [1, 2], y: 0 }, itemStyle: { color: hues[0].fill },
          data: data.bands.map(([row, from, to, used]) => [row, 1000 * from, 1000 * to, used / data.hosts[row].devices]),
        },
        {
          name: "jobs", type: "custom", xAxisIndex: 1, yAxisIndex: 1, renderItem: bar(look), encode: { x: [1, 2], y: 0 },
          data: data.bars.map(([row, job, from, to, reason]) => [row, 1000 * from, 1000 * to, job ?? -1, reason]),
        },
        marks("resizes", 2, text, data.resizes, (one) => `${called.get(one.job)}: ${one.from}→${one.to}`),
        marks("losses", 4, bad, data.losses, (one) => `${called.get(one.job)}: lost ${one.workers === 1 ? "a worker" : `${one.workers} workers`}`),
      ],
    };
  };

  const draw = async () => {
    const answer = await edtFetch(place.dataset.url);
    if (answer === null) return; // the picture stays
    const data = await answer.json();
    document.getElementById("chart-key").hidden = place.hidden = data.bars.length + data.idle.length + data.bands.length === 0;
    if (place.hidden) return;
    const rows = data.bands.length ? data.hosts.length : data.rows.length;
    const row = Math.max(LEAST_ROW, Math.min(ROW, TALLEST / rows));
    place.style.height = `${Math.round(rows * row) + ABOVE + AROUND}px`;
    chart ??= echarts.init(place, null, { renderer: "canvas" });
    const zoom = edtZoom(chart);
    if (chart.getWidth() !== place.clientWidth || chart.getHeight() !== place.clientHeight) chart.resize();
    chart.setOption(options(data, zoom), true);
    place.dataset.bars = data.bars.length;
    place.dataset.bands = data.bands.length;
  };
  document.body.addEventListener("edt:changed", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("resize", () => chart && draw());
  setInterval(() => { if (!document.hidden) draw(); }, 30000); // time goes on
  draw();
})();
