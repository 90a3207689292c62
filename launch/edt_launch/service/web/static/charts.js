// Draws who had which device when: a row a device, a bar for each job that had it.
"use strict";
(() => {
  const place = document.getElementById("chart");
  if (!place) return;
  const HUES = 8, ROW = 26, AROUND = 110;
  let chart = null;

  // What the stylesheet makes of colours, light or dark.
  const coloured = (name) => {
    const probe = document.body.appendChild(Object.assign(document.createElement("span"), { className: name }));
    const { backgroundColor, color } = getComputedStyle(probe);
    probe.remove();
    return { fill: backgroundColor, text: color };
  };
  const letter = (number) => String.fromCharCode(65 + ((number + 25) % 26));
  const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString();

  const bar = (looks) => (params, api) => {
    const [left, middle] = api.coord([api.value(1), api.value(0)]);
    const right = api.coord([api.value(2), api.value(0)])[0];
    const height = Math.min(ROW, api.size([0, 1])[1]) * 0.72;
    const whole = { x: left, y: middle - height / 2, width: Math.max(1, right - left), height };
    const shape = echarts.graphic.clipRectByRect(whole, params.coordSys);
    const look = looks(api.value(3));
    return shape && {
      type: "rect", shape, style: { fill: look.fill },
      textContent: { style: { text: shape.width > 14 ? look.letter : "", fill: look.text, fontWeight: "bold" } },
      textConfig: { position: "inside" },
    };
  };

  const options = (data) => {
    const hues = [...Array(HUES).keys()].map((hue) => coloured(`hue-${hue}`));
    const idle = coloured("idle"), text = getComputedStyle(document.body).color, line = coloured("line-colour").fill;
    const look = (job) => {
      const one = data.jobs[job];
      return one ? { ...hues[one.number % HUES], letter: letter(one.number) } : { ...idle, letter: "" };
    };
    const told = ({ value, seriesName }) => {
      const row = data.rows[value[0]], one = data.jobs[value[3]];
      const who = seriesName === "idle" ? "free while a job waited" : one ? `${one.name || one.id} of ${one.owner}` : "several jobs";
      return `${row.host} ${row.device}: ${who}\n${clock(value[1] / 1000)} to ${clock(value[2] / 1000)}`;
    };
    const axis = { axisLabel: { color: text }, axisLine: { lineStyle: { color: line } }, splitLine: { lineStyle: { color: line } } };
    return {
      animation: false,
      textStyle: { fontFamily: "system-ui, sans-serif" },
      aria: { enabled: true, decal: { show: true } },
      tooltip: { renderMode: "richText", formatter: told },
      grid: { left: 8, right: 16, top: 8, bottom: 64, containLabel: true },
      dataZoom: [{ type: "inside", filterMode: "weakFilter" }, { type: "slider", filterMode: "weakFilter", height: 24, textStyle: { color: text } }],
      xAxis: { type: "time", min: 1000 * data.since, max: 1000 * data.until, ...axis, axisLabel: { color: text, hideOverlap: true } },
      yAxis: { type: "category", inverse: true, data: data.rows.map((row) => `${row.host} ${row.device}`), ...axis },
      series: [
        {
          name: "idle", type: "custom", renderItem: bar(() => ({ ...idle, letter: "" })), encode: { x: [1, 2], y: 0 },
          data: data.idle.map(([row, from, to]) => [row, 1000 * from, 1000 * to]),
        },
        {
          name: "jobs", type: "custom", renderItem: bar(look), encode: { x: [1, 2], y: 0 },
          data: data.bars.map(([row, job, from, to]) => [row, 1000 * from, 1000 * to, job ?? -1]),
          markLine: {
            symbol: "none", silent: true, label: { show: false }, lineStyle: { color: text, type: "dotted", opacity: 0.6 },
            data: data.resizes.map((resize) => ({ xAxis: 1000 * resize.time })),
          },
        },
      ],
    };
  };

  const draw = async () => {
    const width = Math.max(200, Math.round(place.parentElement.clientWidth));
    const answer = await fetch(`${place.dataset.url}&pixels=${width}`).catch(() => null);
    if (!answer?.ok) return; // the light says that there is no connection; the picture stays
    const data = await answer.json();
    document.getElementById("chart-key").hidden = place.hidden = data.bars.length + data.idle.length === 0;
    if (place.hidden) return;
    place.style.height = `${data.rows.length * ROW + AROUND}px`;
    chart ??= echarts.init(place, null, { renderer: "canvas" });
    const zoom = chart.getOption()?.dataZoom?.map(({ start, end }) => ({ start, end }));
    chart.resize();
    chart.setOption(options(data), true);
    zoom?.forEach((part, dataZoomIndex) => chart.dispatchAction({ type: "dataZoom", dataZoomIndex, ...part }));
    place.dataset.bars = data.bars.length;
  };
  document.body.addEventListener("edt:changed", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("resize", () => chart && draw());
  setInterval(() => { if (!document.hidden) draw(); }, 30000); // time goes on
  draw();
})();
