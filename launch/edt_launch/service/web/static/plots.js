// Draws a job's course: what it reports, its throughput and its size, over one axis; resizes are lines.
"use strict";
(() => {
  const begin = (place) => {
    const EVERY = 5000; // milliseconds between two looks at a job that goes on
    const ROOM = 44; // pixels for what is written at a mark
    const { x, log, smooth } = place.dataset;
    let chart = null, timer = null;

    const smoothed = (points, weight) => {
      let kept = null;
      return points.map(([at, value]) => { if (value === null) return [at, null]; kept = kept === null ? value : weight * kept + (1 - weight) * value; return [at, kept]; });
    };
    const lasting = (seconds) => (seconds < 120 ? `${seconds} s` : seconds < 7200 ? `${+(seconds / 60).toFixed(1)} min` : `${+(seconds / 3600).toFixed(1)} h`);
    const named = (pause) => (pause.from === null ? "start" : `${pause.from}→${pause.to}`);
    const told = (pause) => {
      const what = pause.from === null ? `restarted with ${pause.to}` : `${pause.from}→${pause.to} workers`;
      const long = lasting(+(pause.end - pause.start).toPrecision(3));
      return `${what}: no step for ${long}, until ${edtClock(1000 * pause.end)}${pause.reason ? `\n${pause.reason}` : ""}`;
    };
    const exact = (value) => (typeof value === "number" ? +value.toPrecision(5) : value);

    const options = (data, zoom) => {
      const hues = [...Array(8).keys()].map((hue) => edtColour(`hue-${hue}`).fill);
      const text = getComputedStyle(document.body).color, line = edtColour("line-colour").fill, idle = edtColour("idle").fill;
      const xs = x === "clock" ? data.time.map((time) => 1000 * time) : data[x];
      const of = (name) => {
        const gaps = new Set(data.gaps[name]); // null breaks the line; what was not reported does not
        return data.values[name].map((value, at) => [xs[at], log === "1" && value <= 0 ? null : value]).filter(([, value], at) => value !== null || gaps.has(at));
      };
      const at = (pause) => (x === "clock" ? 1000 * pause.end : pause[x]);
      // Every size is in the pauses, however few points are left of the rest; over the clock, nobody trains in a start anew.
      const sizes = () => {
        const first = data.pauses[0]?.start ?? Infinity, last = data.time.length - 1;
        const before = data.size.map((value, row) => [xs[row], value]).filter((_, row) => data.time[row] < first);
        const during = data.pauses.flatMap((pause) => [...(x === "clock" ? [[1000 * pause.start, pause.from ?? 0]] : []), [at(pause), pause.to]]);
        return [...before, ...during, [xs[last], data.size[last]]];
      };
      // Over the clock, a line has a gap where the job was started anew.
      const broken = (points) => (x !== "clock" ? points
        : [...points, ...data.pauses.filter((pause) => pause.from === null).map((pause) => [1000 * pause.start + 1, null])].sort(([one], [other]) => one - other));
      const marks = {
        symbol: "none", lineStyle: { color: text, type: "dotted", opacity: 0.6 },
        label: { show: data.pauses.length * ROOM < place.clientWidth, formatter: ({ data: mark }) => mark.name, color: text, fontSize: 10 },
        tooltip: { trigger: "item", formatter: ({ data: mark }) => mark.told },
        data: data.pauses.map((pause) => ({ xAxis: at(pause), name: named(pause), told: told(pause) })),
      };
      const bands = x !== "clock" ? undefined : {
        silent: true, itemStyle: { color: idle, opacity: 0.5 },
        data: data.pauses.map((pause) => [{ xAxis: 1000 * pause.start }, { xAxis: 1000 * pause.end }]),
      };
      const names = new URLSearchParams(place.dataset.url.split("?")[1]).getAll("name");
      const common = { type: "line", showSymbol: false, animation: false };
      const values = names.flatMap((name, number) => {
        const colour = hues[number % hues.length], points = broken(of(name));
        const raw = { ...common, name, data: points, lineStyle: { color: colour, width: 2 }, itemStyle: { color: colour } };
        if (smooth === "0") return [raw];
        return [
          { ...raw, lineStyle: { color: colour, width: 1, opacity: 0.35 } },
          { ...raw, name: `${name}, smoothed`, data: smoothed(points, +smooth) },
        ];
      });
      if (values.length) values[0] = { ...values[0], markLine: { ...marks }, markArea: bands };
      const below = (index) => ({ ...common, xAxisIndex: index, yAxisIndex: index, markLine: { ...marks, label: { show: false } }, markArea: bands });
      const axis = { axisLabel: { color: text, hideOverlap: true }, axisLine: { lineStyle: { color: line } }, splitLine: { lineStyle: { color: line, opacity: 0.6 } }, nameTextStyle: { color: text, align: "left" } };
      const grids = [[46, 240], [330, 80], [452, 70]];
      return {
        animation: false,
        useUTC: true,
        textStyle: { fontFamily: "system-ui, sans-serif" },
        aria: { enabled: true, label: { enabled: false } },
        legend: { top: 0, right: 8, textStyle: { color: text }, data: values.map((one) => one.name), type: "scroll", pageTextStyle: { color: text } },
        tooltip: { trigger: "axis", renderMode: "richText", valueFormatter: exact },
        axisPointer: { link: [{ xAxisIndex: "all" }] },
        dataZoom: [{ ...zoom, type: "inside", xAxisIndex: [0, 1, 2] }, { ...zoom, type: "slider", xAxisIndex: [0, 1, 2], height: 20, bottom: 4, textStyle: { color: text } }],
        grid: grids.map(([top, height]) => ({ left: 64, right: 20, top, height, outerBoundsMode: "none" })),
        xAxis: grids.map((_, gridIndex) => ({ gridIndex, type: x === "clock" ? "time" : "value", min: "dataMin", max: "dataMax", ...axis, axisLabel: { ...axis.axisLabel, show: gridIndex === 2, showMaxLabel: x === "clock", ...(x === "training" ? { formatter: lasting } : {}) } })),
        yAxis: [
          { gridIndex: 0, type: log === "1" ? "log" : "value", scale: true, name: names.length === 1 ? names[0] : "", ...axis },
          { gridIndex: 1, type: "value", name: "steps a second", splitNumber: 2, ...axis },
          { gridIndex: 2, type: "value", name: "workers", minInterval: 1, min: 0, splitNumber: 2, ...axis },
        ],
        series: [
          ...values,
          { ...below(1), name: "steps a second", data: broken(data.throughput.map((value, row) => [xs[row], value])), lineStyle: { color: hues[4] }, itemStyle: { color: hues[4] } },
          { ...below(2), name: "workers", step: "end", data: sizes(), lineStyle: { color: hues[0] }, itemStyle: { color: hues[0] }, areaStyle: { color: hues[0], opacity: 0.15 } },
        ],
      };
    };

    const draw = async () => {
      const answer = await edtFetch(place.dataset.url);
      if (answer === null) return; // the picture stays
      const data = await answer.json();
      document.getElementById("plots-key").hidden = place.hidden = data.time.length === 0;
      if (place.hidden) return;
      chart ??= echarts.init(place, null, { renderer: "canvas" });
      const zoom = edtZoom(chart);
      chart.resize();
      chart.setOption(options(data, zoom), true);
      place.dataset.points = data.time.length;
    };
    const later = () => { timer ??= setTimeout(() => { timer = null; if (!document.hidden) draw(); }, EVERY); };
    const job = place.closest("[data-job]").dataset.job;
    document.body.addEventListener("edt:job", ({ detail }) => { if (detail === job) later(); });
    document.body.addEventListener("edt:changed", later);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    addEventListener("resize", () => chart?.resize());
    draw();
  };
  // Before anything has been reported, the page has no place for it.
  let known = null;
  const look = () => {
    const place = document.getElementById("plots");
    if (place && place !== known) begin(known = place);
  };
  document.addEventListener("htmx:after:swap", look);
  look();
})();
