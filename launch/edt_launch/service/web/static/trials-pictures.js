// Pictures of trials: parallel coordinates, two axes, the objective over trials, the curves of those chosen.
"use strict";
(() => {
  const { common, legend, palette } = edtPictures;
  const { METRIC, NUMBER, exact, find, metric, position, sign, state, valueOf } = edtTrials;
  const CURVES = 10; // at a time
  const GRID = { left: 64, right: 16, top: 24, bottom: 40 };

  const measured = () => state.trials.filter((trial) => trial.metric !== null);
  const metricOf = (axes) => axes.find(({ key }) => key === METRIC);
  const open = (id) => {
    find(id).hidden = false;
    return edtPictures.open(find(id));
  };
  const draw = (id, colours, options) => {
    const chart = open(id);
    chart.setOption({ ...common(colours), ...options }, true);
    return chart;
  };
  const tooltip = (axes) => ({
    renderMode: "richText",
    formatter: ({ data: { trial } }) => {
      const lines = axes.map(({ key, name }) => `${name}: ${exact(valueOf(trial, key)) ?? trial.state}`);
      return [`trial ${trial.number}`, ...lines].join("\n");
    },
  });
  // The colours of the objective; none while no trial has a value.
  const visualMap = ({ low, high }, { hues, text }, options) => {
    const [good, fair] = hues.map(({ fill }) => fill);
    const color = sign > 0 ? [good, fair] : [fair, good];
    const ends = { min: low, max: low < high ? high : low + 1, text: [exact(high), exact(low)] };
    const all = { type: "continuous", ...ends, inRange: { color }, textStyle: { color: text }, ...options };
    return measured().length ? all : undefined;
  };
  const scale = ({ texts, isLog }) =>
    texts ? { type: "category", data: texts } : { type: isLog ? "log" : "value", scale: true };

  // Where the metric's axis has labels: at the lane of failed trials, and at round values well above that,
  // since ECharts leaves out labels that are close.
  const labels = ({ low, high, lane, isLog }) => {
    if (!measured().length) return [lane];
    const least = (high - low) / 6 || Math.abs(low) || 1;
    const unit = 10 ** Math.floor(Math.log10(least));
    const step = unit * [1, 2, 5, 10].find((many) => many * unit >= least);
    const round = (index) =>
      isLog ? 10 ** (Math.ceil(Math.log10(low)) + index) : (Math.ceil(low / step) + index) * step;
    const found = [...Array(8).keys()].map(round).filter((value) => value <= high);
    return [lane, ...(found.length > 1 ? found : new Set([low, high]))];
  };
  const parallelAxis = (axis, dim, maxWidth, { background, text }) => {
    const isMetric = axis.key === METRIC;
    return {
      ...scale(axis),
      id: axis.key,
      dim,
      name: axis.name,
      inverse: axis.isFlipped,
      nameTruncate: { maxWidth },
      min: isMetric ? axis.lane : undefined,
      axisLabel: {
        color: text,
        textBorderColor: background,
        textBorderWidth: 3,
        customValues: isMetric ? labels(axis) : undefined,
        formatter: (value) => (isMetric && value <= axis.lane ? "failed" : exact(value)),
      },
    };
  };
  const parallelLayout = ({ text }) => ({
    left: 40,
    right: 60,
    top: 40,
    bottom: 60,
    parallelAxisDefault: {
      areaSelectStyle: { color: text, borderColor: text, opacity: 0.2 },
      nameTextStyle: { color: text },
      axisLine: { lineStyle: { color: text } },
      axisTick: { lineStyle: { color: text } },
    },
  });
  const parallelSeries = (name, trials, shown, look) => ({
    type: "parallel",
    name,
    progressive: 0,
    emphasis: { lineStyle: { width: 4, opacity: 1 } },
    lineStyle: { width: 1.5, ...look },
    data: trials.map((trial) => ({ value: [...shown.map((axis) => position(trial, axis)), trial.metric], trial })),
  });
  const drawParallel = (axes, colours) => {
    const shown = axes.filter((axis) => axis.isShown);
    const width = Math.max(30, (open("parallel").getWidth() - 100) / shown.length - 6);
    const bar = { orient: "horizontal", left: "center", bottom: 0, itemHeight: 120, itemWidth: 12 };
    const failed = state.trials.filter((one) => one.metric === null && ["failed", "stopped"].includes(one.state));
    const opacity = measured().length > 200 ? 0.3 : 0.6;
    const chart = draw("parallel", colours, {
      tooltip: tooltip(shown),
      visualMap: visualMap(metricOf(axes), colours, { ...bar, dimension: shown.length, seriesIndex: 1 }),
      parallel: parallelLayout(colours),
      parallelAxis: shown.map((axis, dim) => parallelAxis(axis, dim, width, colours)),
      series: [
        parallelSeries("failed", failed, shown, { opacity: 0.7, type: "dashed", color: colours.bad }),
        parallelSeries("trials", measured(), shown, { opacity }),
      ],
    });
    for (const { key } of shown) {
      const intervals = state.intervals.get(key) ?? [];
      if (intervals.length) chart.dispatchAction({ type: "axisAreaSelect", parallelAxisId: key, intervals });
    }
  };

  const side = (axis, colours, nameGap, options) => {
    const look = edtPictures.axis(colours, 0.5, "center");
    const axisLabel = { ...look.axisLabel, formatter: axis.texts ? undefined : exact };
    return { ...scale(axis), ...look, axisLabel, name: axis.name, nameLocation: "middle", nameGap, ...options };
  };
  const plane = (x, y, colours, options) => ({
    grid: GRID,
    xAxis: side(x, colours, 26, options),
    yAxis: side(y, colours, 46),
  });
  const drawScatter = (axes, colours, looked) => {
    const all = [...axes, { key: NUMBER, name: "trial" }];
    const { elements } = find("plane");
    const [x, y] = [elements.x, elements.y].map(({ value }) => all.find(({ key }) => key === value));
    const metricAxis = metricOf(axes);
    const item = (trial) => ({
      value: [position(trial, x), position(trial, y), trial.metric],
      trial,
      itemStyle: { opacity: looked.has(trial) ? 0.9 : 0.12 },
    });
    const data = measured().filter((trial) => [x, y].every(({ key }) => valueOf(trial, key) !== null));
    const chart = draw("scatter", colours, {
      ...plane(x, y, colours),
      tooltip: tooltip(y === metricAxis ? [x, y] : [x, y, metricAxis]),
      visualMap: visualMap(metricAxis, colours, { dimension: 2, show: false }),
      toolbox: { show: false },
      brush: {
        xAxisIndex: 0,
        brushMode: "single",
        brushStyle: { color: "transparent", borderColor: colours.text, borderWidth: 1 },
        outOfBrush: { colorAlpha: 1 },
      },
      series: [{ type: "scatter", symbolSize: 8, data: data.map(item) }],
    });
    const brushOption = { brushType: "rect", brushMode: "single" };
    chart.dispatchAction({ type: "takeGlobalCursor", key: "brush", brushOption });
  };

  const drawObjective = (axes, colours) => {
    const y = metricOf(axes);
    const data = measured().map((trial) => ({ value: [trial.number, trial.metric], trial }));
    let best = Infinity;
    const bests = measured().map((trial) => {
      best = Math.min(best, sign * trial.metric);
      return [trial.number, sign * best];
    });
    const line = { width: 2, color: colours.hues[0].fill };
    draw("course", colours, {
      ...plane({ name: "trial" }, y, colours, { minInterval: 1, min: 0 }),
      tooltip: tooltip([y]),
      series: [
        { type: "scatter", symbolSize: 6, itemStyle: { color: colours.text, opacity: 0.5 }, data },
        { type: "line", step: "end", showSymbol: false, silent: true, lineStyle: line, data: bests },
      ],
    });
  };

  const curve = (job, { step, values }, index, { hues }) => {
    const color = hues[index % hues.length].fill;
    const trial = state.trials.find((one) => one.job === job);
    return {
      type: "line",
      name: trial ? `trial ${trial.number}` : job,
      showSymbol: step.length === 1,
      itemStyle: { color },
      lineStyle: { color, type: index < hues.length ? "solid" : "dashed" },
      data: step.map((at, point) => [at, values[metric][point]]).filter(([, value]) => value !== null),
    };
  };
  const drawCurves = async () => {
    const jobs = [...state.chosen].slice(0, CURVES);
    find("curves-part").hidden = false;
    find("curves-key").hidden = jobs.length > 0;
    find("curves").hidden = !jobs.length;
    if (!jobs.length) return;
    const query = new URLSearchParams({ name: metric, points: 300 });
    const found = await Promise.all(jobs.map((job) => edtFetchJson(`/api/v1/jobs/${job}/metrics?${query}`)));
    const colours = palette();
    draw("curves", colours, {
      ...plane({ name: "step" }, { name: metric }, colours, { min: "dataMin" }),
      grid: { ...GRID, top: 40 },
      tooltip: { trigger: "axis", renderMode: "richText", valueFormatter: exact },
      legend: legend(colours),
      series: found.flatMap((data, index) => (data ? curve(jobs[index], data, index, colours) : [])),
    });
    find("curves").dataset.curves = found.length;
  };

  Object.assign(edtTrials, { drawCurves, drawObjective, drawParallel, drawScatter, open });
})();
