// What pictures over steps or time have in common: they can be zoomed, and stay so when they are drawn anew.
"use strict";
(() => {
  // A time of day as the page's text has it.
  const clock = (milliseconds) => `${new Date(milliseconds).toISOString().slice(11, 19)} UTC`;

  // Null breaks a line: it is drawn where a value was no number (`gaps`), not where none was reported.
  const points = (xs, values, gaps = []) => {
    const breaks = new Set(gaps);
    return values
      .map((value, index) => [xs[index], value])
      .filter(([, value], index) => value !== null || breaks.has(index));
  };
  // Where the rows of a series are on the x axis: at their step, time of training, or time of day.
  const positions = (series, x) => (x === "clock" ? series.time.map((time) => 1000 * time) : series[x]);

  // An exponential moving average; it goes on behind a gap.
  const smoothed = (line, weight) => {
    let average = null;
    return line.map(([x, value]) => {
      if (value === null) return [x, null];
      average = average === null ? value : weight * average + (1 - weight) * value;
      return [x, average];
    });
  };

  const duration = (seconds) => {
    if (seconds < 120) return `${seconds} s`;
    return seconds < 7200 ? `${+(seconds / 60).toFixed(1)} min` : `${+(seconds / 3600).toFixed(1)} h`;
  };
  // A place on the x axis, in words.
  const WHERE = { step: (x) => `step ${Math.round(x)}`, training: (x) => duration(Math.round(x)), clock };

  const dataZoom = ({ text }, options) =>
    ["inside", "slider"].map((type) => ({ type, textStyle: { color: text }, ...options }));

  // Panels below each other over one x axis. In pixels: the height of one, and of the only one; what is between two
  // and below.
  const PANEL = 150;
  const ONLY = 240;
  const BETWEEN = 42;
  const BELOW = 70;
  const heightsOf = (names) => names.map(() => (names.length === 1 ? ONLY : PANEL));
  // The options that panels of these heights share, for all of their series; and the height of the picture.
  const panels = (heights, { x, above = 4, series, colours }) => {
    let bottom = above;
    const grid = heights.map((height) => {
      const top = bottom + BETWEEN;
      bottom = top + height;
      return { top, height, left: 64, right: 20, outerBoundsMode: "none" };
    });
    // Each panel reaches as far as the longest one.
    let [min, max] = [Infinity, -Infinity];
    for (const { data } of series) {
      for (const [at] of data) [min, max] = [Math.min(min, at), Math.max(max, at)];
    }
    const isClock = x === "clock";
    const plain = edtPictures.axis(colours);
    const labels = { ...plain.axisLabel, showMaxLabel: isClock };
    if (x === "training") labels.formatter = duration;
    if (isClock) labels.formatter = edtPictures.TIMES;
    const options = {
      grid,
      axisPointer: { link: [{ xAxisIndex: "all" }] },
      dataZoom: dataZoom(colours, { xAxisIndex: [...heights.keys()], height: 20, bottom: 4 }),
      xAxis: grid.map((_, gridIndex) => ({
        ...plain,
        gridIndex,
        type: isClock ? "time" : "value",
        min,
        max,
        axisLabel: { ...labels, show: gridIndex === grid.length - 1 },
      })),
    };
    return [options, bottom + BELOW];
  };

  // What a picture is zoomed to, to be kept when it is drawn anew; its end is kept at the end.
  const zoomOf = (chart) => {
    const zoom = chart.getOption()?.dataZoom?.[0];
    if (!zoom || (zoom.start === 0 && zoom.end === 100)) return {};
    return { startValue: zoom.startValue, ...(zoom.end === 100 ? { end: 100 } : { endValue: zoom.endValue }) };
  };
  const draw = (place, options) => {
    const chart = edtPictures.open(place);
    const zoom = zoomOf(chart);
    if (chart.getWidth() !== place.clientWidth || chart.getHeight() !== place.clientHeight) chart.resize();
    chart.setOption({ ...options, dataZoom: options.dataZoom.map((one) => ({ ...zoom, ...one })) }, true);
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
    chart.dispatchAction({
      type: "dataZoom",
      dataZoomIndex: 0,
      start: Math.max(0, start + shift),
      end: Math.min(100, end + shift),
    });
  });

  Object.assign(edtPictures, {
    WHERE, clock, dataZoom, draw, duration, heightsOf, panels, points, positions, smoothed,
  });
})();
