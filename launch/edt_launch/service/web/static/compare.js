// Draws a value of several runs over each other.
"use strict";
(() => {
  const place = document.getElementById("curves");
  if (!place) return;
  const EVERY = 5000; // milliseconds between two looks at runs that go on
  const DASHES = ["solid", "dashed", "dotted"];
  const { x } = place.dataset;
  let chart = null, timer = null;

  const options = ({ name, series }) => {
    const hues = [...Array(8).keys()].map((hue) => edtColour(`hue-${hue}`).fill);
    const text = getComputedStyle(document.body).color, line = edtColour("line-colour").fill;
    const axis = { axisLabel: { color: text, hideOverlap: true }, axisLine: { lineStyle: { color: line } }, splitLine: { lineStyle: { color: line, opacity: 0.6 } }, nameTextStyle: { color: text, align: "left" } };
    const points = (one) => {
      const gaps = new Set(one.gaps); // null breaks the line; what was not reported does not
      const xs = x === "clock" ? one.time.map((time) => 1000 * time) : one[x];
      return one.values.map((value, at) => [xs[at], value]).filter(([, value], at) => value !== null || gaps.has(at));
    };
    return {
      animation: false,
      textStyle: { fontFamily: "system-ui, sans-serif" },
      aria: { enabled: true, label: { enabled: false } },
      legend: { top: 0, type: "scroll", textStyle: { color: text }, pageTextStyle: { color: text } },
      tooltip: { trigger: "axis", renderMode: "richText", valueFormatter: (value) => (typeof value === "number" ? +value.toPrecision(5) : value) },
      dataZoom: [{ type: "inside" }, { type: "slider", height: 20, bottom: 4, textStyle: { color: text } }],
      grid: { left: 64, right: 20, top: 56, bottom: 64, outerBoundsMode: "none" },
      xAxis: { type: x === "clock" ? "time" : "value", min: "dataMin", max: "dataMax", name: x === "training" ? "seconds of training" : "", ...axis },
      yAxis: { type: "value", scale: true, name, ...axis },
      series: series.map((one, number) => {
        const color = hues[number % hues.length], type = DASHES[Math.floor(number / hues.length)];
        return { type: "line", name: `${one.job} ${one.name}`, showSymbol: false, data: points(one), lineStyle: { color, type, width: 2 }, itemStyle: { color } };
      }),
    };
  };
  const draw = async () => {
    const answer = await edtFetch(place.dataset.url);
    if (answer === null) return; // the picture stays
    const data = await answer.json();
    place.hidden = data.series.every((one) => one.time.length === 0);
    if (place.hidden) return;
    chart ??= echarts.init(place, null, { renderer: "canvas" });
    const zoom = chart.getOption()?.dataZoom?.map(({ start, end }) => ({ start, end }));
    chart.resize();
    chart.setOption(options(data), true);
    zoom?.forEach((part, dataZoomIndex) => chart.dispatchAction({ type: "dataZoom", dataZoomIndex, ...part }));
    place.dataset.curves = data.series.length;
  };
  document.body.addEventListener("edt:changed", () => { timer ??= setTimeout(() => { timer = null; if (!document.hidden) draw(); }, EVERY); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("resize", () => chart?.resize());
  draw();
})();
