// Draws who had which device when: a row a device, or in a large pool a host, and a bar for each job that had it.
"use strict";
(() => {
  const { TIMES, axis, clock, common, dataZoom, draw, keepDrawn, legend, palette } = edtPictures;
  const place = document.getElementById("chart");
  const unit = `${place.dataset.unit}s`;
  // In pixels: the height of a row, at most and at least, and of all of them; what is above them, and around.
  const ROW = 26;
  const LEAST_ROW = 9;
  const ALL_ROWS = 2600;
  const ABOVE = 150;
  const AROUND = 96;

  const isByHost = (data) => data.bands.length > 0;

  // A rectangle in a row, from one time to another; `part` is its share of the row's height, filled from below.
  const rectangle = (params, api, part, filled = 1) => {
    const [left, middle] = api.coord([api.value(1), api.value(0)]);
    const [right] = api.coord([api.value(2), api.value(0)]);
    const whole = part * api.size([0, 1])[1];
    const height = filled * whole;
    const shape = { x: left, y: middle + whole / 2 - height, width: Math.max(1, right - left), height };
    return echarts.graphic.clipRectByRect(shape, params.coordSys);
  };
  const bar = (look, edge) => (params, api) => {
    const shape = rectangle(params, api, 0.72);
    if (!shape) return undefined;
    const { fill, text, name } = look(api.value(3));
    const hasRoom = shape.width > 14 && shape.height > 11;
    const shown = { text: name, fill: text, width: shape.width - 8, overflow: "truncate" };
    return {
      type: "rect",
      shape,
      style: { fill, stroke: edge, lineWidth: 1 },
      textContent: { style: hasRoom ? shown : {} },
      textConfig: { position: "inside" },
    };
  };
  // A host's part of time: as high as many of its devices were used.
  const band = (params, api) => {
    const shape = rectangle(params, api, 0.86, api.value(3));
    return shape && { type: "rect", shape, style: { fill: api.visual("color") } };
  };
  const mark = (width) => (params, api) => {
    const [middle, row] = api.coord([api.value(1), api.value(0)]);
    const height = api.size([0, 1])[1];
    const whole = { x: middle - width / 2, y: row - height / 2, width, height };
    const shape = echarts.graphic.clipRectByRect(whole, params.coordSys);
    return shape && { type: "rect", shape, style: { fill: api.visual("color") } };
  };

  // The texts of tooltips are one line each, however long.
  const wrapped = (text) => text.replace(/(.{40,60}) /g, "$1\n");
  const period = (from, to) => `${clock(from)} to ${clock(to)}`;
  const describeBand = ({ host, devices }, [, from, to, used]) =>
    `${host}: ${+(used * devices).toFixed(2)} of ${devices} ${unit} used\n${period(from, to)}`;
  const describeBar = (data, isIdle, [row, from, to, number, reason]) => {
    const { host, device } = data.rows[row];
    const job = data.jobs[number];
    const holder = job ? `${job.name || job.id} of ${job.owner}` : "several jobs";
    const why = data.reasons[reason] ? `\nGranted: ${wrapped(data.reasons[reason])}` : "";
    return `${host} ${device}: ${isIdle ? "idle while a job was queued" : holder}\n${period(from, to)}${why}`;
  };
  // Where the pointer is: the tooltip of an axis knows the nearest point only.
  let pointer = 0;
  place.addEventListener("mousemove", ({ offsetX }) => (pointer = offsetX), true);
  const describeOwners = (data, at) => {
    const used = uses(data).map((use) => (isByHost(data) ? use.find(([to]) => 1000 * to >= at) : use.findLast(([from]) => 1000 * from <= at)));
    const lines = data.owners.map(({ owner }, index) => `${owner}: ${+(used[index]?.[1] ?? 0).toFixed(1)} ${unit}`);
    return [clock(at), ...lines].join("\n");
  };
  const tooltip = (data) => (shown) => {
    if (Array.isArray(shown)) return describeOwners(data, edtPictures.open(place).convertFromPixel({ xAxisIndex: 0 }, pointer));
    const { value, data: item, seriesName } = shown;
    if (item.description) return `${item.description}\n${clock(value[1])}`;
    if (seriesName === "hosts") return describeBand(data.hosts[value[0]], value);
    return describeBar(data, seriesName === "idle", value);
  };

  // An owner's devices over time: exact where each bar is shown, else the mean of each part of the period.
  const uses = (data) => {
    const { owners, bars, jobs, since, until } = data;
    if (isByHost(data) || bars.some(([, job]) => job === null)) {
      return owners.map(({ use }) => use.map((used, part) => [since + ((part + 1) * (until - since)) / use.length, used]));
    }
    const times = [...new Set([since, until, ...bars.flatMap(([, , from, to]) => [from, to])])].sort((a, b) => a - b);
    return owners.map(({ owner }) => {
      const changes = new Map();
      const change = (time, by) => changes.set(time, (changes.get(time) ?? 0) + by);
      for (const [, job, from, to] of bars) {
        if (jobs[job].owner !== owner) continue;
        change(from, 1);
        change(to, -1);
      }
      let used = 0;
      return times.map((time) => [time, (used += changes.get(time) ?? 0)]);
    });
  };
  const ownerSeries = (data, { hues }) =>
    uses(data).map((use, index) => {
      const color = hues[index % hues.length].fill;
      return {
        name: data.owners[index].owner,
        type: "line",
        stack: "use",
        xAxisIndex: 0,
        yAxisIndex: 0,
        showSymbol: false,
        step: isByHost(data) ? "start" : "end",
        lineStyle: { color, width: 1 },
        itemStyle: { color },
        areaStyle: { color, opacity: 0.7 },
        data: use.map(([time, used]) => [1000 * time, used]),
      };
    });

  const inRows = { type: "custom", xAxisIndex: 1, yAxisIndex: 1 };
  const rowSeries = (data, { hues, idle, background }) => {
    const spans = { ...inRows, encode: { x: [1, 2], y: 0 } };
    const free = { ...idle, name: "" };
    const places = new Map(data.owners.map(({ owner }, index) => [owner, index]));
    const look = (number) => {
      const job = data.jobs[number];
      return job ? { ...hues[(places.get(job.owner) ?? 0) % hues.length], name: job.name || job.id } : free;
    };
    return [
      {
        ...spans,
        name: "idle",
        renderItem: bar(() => free, background),
        data: data.idle.map(([row, from, to]) => [row, 1000 * from, 1000 * to]),
      },
      {
        ...spans,
        name: "hosts",
        renderItem: band,
        itemStyle: { color: hues[0].fill },
        data: data.bands.map(([row, from, to, used]) => [row, 1000 * from, 1000 * to, used / data.hosts[row].devices]),
      },
      {
        ...spans,
        name: "jobs",
        renderItem: bar(look, background),
        data: data.bars.map(([row, job, from, to, reason]) => [row, 1000 * from, 1000 * to, job ?? -1, reason]),
      },
    ];
  };

  // Where something happened to jobs: in the rows that they had then.
  const markSeries = (data, { text, bad }) => {
    const names = new Map(data.jobs.map((job) => [job.id, job.name || job.id]));
    const barsByJob = Map.groupBy(data.bars, ([, job]) => data.jobs[job]?.id);
    const marks = (name, events, describe, width, color) => ({
      ...inRows,
      name,
      encode: { x: 1, y: 0 },
      renderItem: mark(width),
      itemStyle: { color },
      data: (isByHost(data) ? [] : events).flatMap((event) =>
        (barsByJob.get(event.job) ?? [])
          .filter(([, , from, to]) => from <= event.time && event.time <= to)
          .map(([row]) => ({
            value: [row, 1000 * event.time],
            description: `${names.get(event.job)}: ${describe(event)}`,
          })),
      ),
    });
    const lost = ({ workers }) => `lost ${workers === 1 ? "a worker" : `${workers} workers`}`;
    return [
      marks("resizes", data.resizes, ({ from, to }) => `${from}→${to}`, 2, text),
      marks("losses", data.losses, lost, 4, bad),
    ];
  };

  const rowNames = (data) =>
    isByHost(data) ? data.hosts.map(({ host }) => host) : data.rows.map(({ host, device }) => `${host} ${device}`);
  // The owners' devices are above the rows, over the same time.
  const axes = (data, colours, names, left) => {
    const plain = axis(colours, 1);
    const total = data.hosts.reduce((sum, { devices }) => sum + devices, 0);
    const time = { type: "time", min: 1000 * data.since, max: 1000 * data.until, ...plain };
    time.axisLabel = { ...plain.axisLabel, formatter: TIMES };
    return {
      grid: [
        { left, right: 16, top: 30, height: ABOVE - 50, outerBoundsMode: "none", tooltip: { trigger: "axis" } },
        { left, right: 16, top: ABOVE, bottom: AROUND - 16, outerBoundsMode: "none" },
      ],
      xAxis: [
        { ...time, gridIndex: 0, axisLabel: { show: false }, axisPointer: { snap: false } },
        { ...time, gridIndex: 1 },
      ],
      yAxis: [
        { ...plain, gridIndex: 0, type: "value", max: total || 1, interval: Math.ceil(total / 2) || 1 },
        {
          ...plain,
          gridIndex: 1,
          type: "category",
          inverse: true,
          data: names,
          axisLabel: { color: colours.text, width: left - 16, overflow: "truncate" },
        },
      ],
    };
  };

  const options = (data) => {
    const colours = palette();
    const names = rowNames(data);
    const left = 24 + 8 * Math.min(24, Math.max(4, ...names.map((name) => name.length)));
    return {
      ...common(colours),
      aria: { enabled: true, label: { enabled: false }, decal: { show: true } },
      tooltip: { renderMode: "richText", formatter: tooltip(data) },
      legend: { ...legend(colours), left, data: data.owners.map(({ owner }) => owner) },
      dataZoom: dataZoom(colours, { xAxisIndex: [0, 1], filterMode: "weakFilter", height: 24 }),
      ...axes(data, colours, names, left),
      series: [...ownerSeries(data, colours), ...rowSeries(data, colours), ...markSeries(data, colours)],
    };
  };

  const redraw = async () => {
    const data = await edtFetchJson(place.dataset.url);
    if (data === null) return; // the picture stays
    const { bars, idle, bands } = data;
    place.hidden = bars.length + idle.length + bands.length === 0;
    document.getElementById("chart-key").hidden = place.hidden;
    if (place.hidden) return;
    const rows = isByHost(data) ? data.hosts.length : data.rows.length;
    const row = Math.max(LEAST_ROW, Math.min(ROW, ALL_ROWS / rows));
    place.style.height = `${Math.round(rows * row) + ABOVE + AROUND}px`;
    draw(place, options(data));
    place.dataset.bars = bars.length;
    place.dataset.bands = bands.length;
  };
  keepDrawn(redraw);
  setInterval(() => document.hidden || redraw(), 30000); // time goes on
})();
