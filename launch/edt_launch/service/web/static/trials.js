// Draws a search's trials: parallel coordinates, two axes, the objective over trials, curves of chosen ones; lists those looked at.
"use strict";
(() => {
  const EVERY = 5000, ROWS = 100, CURVES = 10; // milliseconds between two looks; rows that are listed; curves at a time
  const find = (id) => document.getElementById(id);
  const place = find("parallel");
  if (!place) return;
  const { url, metric, objective } = place.dataset, sign = objective === "maximize" ? -1 : 1;
  const within = new Map(), chosen = new Set(), charts = {}; // axis -> its intervals; jobs; pictures
  const asked = new URLSearchParams(location.search);
  let trials = [], timer = null, sort = asked.get("sort") ?? "";
  for (const one of asked.getAll("within")) { // an axis, and from where to where on it
    const [, key, low, high] = /^(.*)~([^~]+)~([^~]+)$/.exec(one) ?? [];
    if (key && low <= +high) within.set(key, [[+low, +high]]);
  }

  const exact = (value) => (typeof value === "number" ? +value.toPrecision(4) : value);
  const value = (trial, key) => (key === "m" ? trial.metric : key === "n" ? trial.number : trial.parameters[key.slice(2)] ?? null);
  const rows = () => [...find("axes").querySelectorAll("[data-axis]")];
  const axes = () => rows().map((row) => {
    const is = (name) => row.querySelector(`[name=${name}]`)?.checked ?? false;
    const key = row.dataset.axis, isText = "texts" in row.dataset;
    const found = trials.map((trial) => value(trial, key)).filter((one) => one !== null);
    const axis = { key, name: row.dataset.name, shown: is("axis"), inverse: is("flip"), isText, log: is("log") && found.every((one) => one > 0) };
    if (isText) return { ...axis, texts: [...new Set(found.map(String))].sort() };
    const [low, high] = found.length ? [Math.min(...found), Math.max(...found)] : [1, 1];
    return { ...axis, low, high, lane: axis.log ? low / (high / low || 2) ** 0.15 : low - 0.15 * (high - low || 1) };
  });
  const scale = (axis) => (axis.isText ? { type: "category", data: axis.texts } : { type: axis.log ? "log" : "value", scale: true });
  const at = (axis, trial) => { const one = value(trial, axis.key); return one === null ? (axis.key === "m" ? axis.lane : "-") : axis.isText ? String(one) : one; };
  const looked = (list) => trials.filter((trial) => list.every((axis) => {
    const intervals = within.get(axis.key) ?? [], one = axis.isText ? axis.texts.indexOf(String(value(trial, axis.key))) : at(axis, trial);
    return !intervals.length || intervals.some(([low, high]) => low <= one && one <= high);
  }));
  const failed = (trial) => trial.metric === null && ["failed", "stopped"].includes(trial.state);

  const open = (id) => {
    find(id).hidden = false;
    return (charts[id] ??= echarts.init(find(id), null, { renderer: "canvas" }));
  };
  const looks = () => ({ text: getComputedStyle(document.body).color, back: getComputedStyle(document.body).backgroundColor, line: edtColour("line-colour").fill, good: edtColour("hue-0").fill, fair: edtColour("hue-1").fill, bad: edtColour("bad-colour").fill });
  const common = ({ text }) => ({ animation: false, textStyle: { fontFamily: "system-ui, sans-serif", color: text }, aria: { enabled: true, label: { enabled: false } } });
  const coloured = ({ good, fair, text }, list, dimension, more) => {
    const { low, high } = list.find((axis) => axis.key === "m");
    return { type: "continuous", dimension, min: low, max: low < high ? high : low + 1, inRange: { color: sign > 0 ? [good, fair] : [fair, good] }, textStyle: { color: text }, text: [exact(high), exact(low)], ...more };
  };
  const told = (list) => ({ data }) => [`trial ${data.number}`, ...list.map((axis) => `${axis.name}: ${exact(value(data.trial, axis.key)) ?? data.trial.state}`)].join("\n");

  // Where the metric's axis has labels: at its lane of failed trials, and at round values well above that, since ECharts leaves out labels that are close.
  const labelled = ({ low, high, lane, log }) => {
    const about = (high - low) / 6 || Math.abs(low) || 1, unit = 10 ** Math.floor(Math.log10(about)), step = unit * [1, 2, 5, 10].find((many) => many * unit >= about);
    const round = log ? (power) => 10 ** (Math.ceil(Math.log10(low)) + power) : (count) => (Math.ceil(low / step) + count) * step;
    const found = [...Array(8).keys()].map(round).filter((one) => one <= high);
    return [lane, ...(found.length > 1 ? found : [...new Set([low, high])])];
  };
  const parallel = (list, look) => {
    const shown = list.filter((axis) => axis.shown), chart = open("parallel"), width = Math.max(30, (chart.getWidth() - 100) / shown.length - 6);
    const item = (trial) => ({ value: [...shown.map((axis) => at(axis, trial)), trial.metric], number: trial.number, trial });
    const series = { type: "parallel", progressive: 0, emphasis: { lineStyle: { width: 4, opacity: 1 } } };
    const finite = trials.filter((trial) => trial.metric !== null);
    chart.setOption({
      ...common(look),
      tooltip: { renderMode: "richText", formatter: told(shown) },
      visualMap: finite.length ? coloured(look, list, shown.length, { seriesIndex: 1, orient: "horizontal", left: "center", bottom: 0, itemHeight: 120, itemWidth: 12 }) : undefined,
      parallel: { left: 40, right: 60, top: 40, bottom: 60, parallelAxisDefault: { areaSelectStyle: { color: look.text, borderColor: look.text, opacity: 0.2 }, nameTextStyle: { color: look.text }, axisLine: { lineStyle: { color: look.text } }, axisTick: { lineStyle: { color: look.text } } } },
      parallelAxis: shown.map((axis, dim) => ({
        id: axis.key, dim, name: axis.name, inverse: axis.inverse, nameTruncate: { maxWidth: width }, ...scale(axis), min: axis.key === "m" ? axis.lane : undefined,
        axisLabel: { customValues: axis.key === "m" ? (finite.length ? labelled(axis) : [axis.lane]) : undefined, color: look.text, textBorderColor: look.back, textBorderWidth: 3, formatter: (one) => (axis.key === "m" && one <= axis.lane ? "failed" : exact(one)) },
      })),
      series: [
        { ...series, name: "failed", lineStyle: { width: 1.5, opacity: 0.7, type: "dashed", color: look.bad }, data: trials.filter(failed).map(item) },
        { ...series, name: "trials", lineStyle: { width: 1.5, opacity: finite.length > 200 ? 0.3 : 0.6 }, data: finite.map(item) },
      ],
    }, true);
    shown.forEach(({ key }) => { if (within.get(key)?.length) chart.dispatchAction({ type: "axisAreaSelect", parallelAxisId: key, intervals: within.get(key) }); });
  };

  const grid = { left: 64, right: 16, top: 24, bottom: 40 };
  const side = (axis, look, more) => ({ name: axis.name, nameLocation: "middle", nameTextStyle: { color: look.text }, ...scale(axis), axisLabel: { color: look.text, formatter: axis.isText ? undefined : exact, hideOverlap: true }, axisLine: { lineStyle: { color: look.line } }, splitLine: { lineStyle: { color: look.line, opacity: 0.5 } }, ...more });
  const plane = (list, look, shown) => {
    const all = [...list, { key: "n", name: "trial" }], chart = open("scatter");
    const [x, y] = ["x", "y"].map((name) => all.find((axis) => axis.key === find("plane").elements[name].value));
    const data = trials.filter((trial) => trial.metric !== null && value(trial, x.key) !== null && value(trial, y.key) !== null);
    chart.setOption({
      ...common(look), grid,
      tooltip: { renderMode: "richText", formatter: told([x, y, ...(y.key === "m" ? [] : list.filter((axis) => axis.key === "m"))]) },
      xAxis: side(x, look, { nameGap: 26 }), yAxis: side(y, look, { nameGap: 46 }),
      visualMap: data.length ? coloured(look, list, 2, { show: false }) : undefined,
      toolbox: { show: false }, brush: { xAxisIndex: 0, brushMode: "single", brushStyle: { color: "transparent", borderColor: look.text, borderWidth: 1 }, outOfBrush: { colorAlpha: 1 } },
      series: [{ type: "scatter", symbolSize: 8, data: data.map((trial) => ({ value: [at(x, trial), at(y, trial), trial.metric], number: trial.number, trial, itemStyle: { opacity: shown.has(trial) ? 0.9 : 0.12 } })) }],
    }, true);
    chart.dispatchAction({ type: "takeGlobalCursor", key: "brush", brushOption: { brushType: "rect", brushMode: "single" } });
  };

  const course = (list, look) => {
    const axis = list.find((one) => one.key === "m"), finite = trials.filter((trial) => trial.metric !== null);
    let best = null;
    const line = finite.map((trial) => { best = best === null || sign * trial.metric < sign * best ? trial.metric : best; return [trial.number, best]; });
    open("course").setOption({
      ...common(look), grid, tooltip: { renderMode: "richText", formatter: told([axis]) },
      xAxis: side({ name: "trial", key: "n" }, look, { nameGap: 26, minInterval: 1, min: 0 }), yAxis: side(axis, look, { nameGap: 46 }),
      series: [
        { type: "scatter", symbolSize: 6, itemStyle: { color: look.text, opacity: 0.5 }, data: finite.map((trial) => ({ value: [trial.number, trial.metric], number: trial.number, trial })) },
        { type: "line", step: "end", showSymbol: false, silent: true, lineStyle: { color: look.good, width: 2 }, data: line },
      ],
    }, true);
  };

  const element = (name, text, more) => Object.assign(document.createElement(name), { textContent: text }, more);
  // The line of a failure that says most, as in failure_text.py.
  const cause = (text) => {
    const lines = (text ?? "").split(/\r?\n/), found = ["cause: ", "first failure: "].map((begin) => lines.find((line) => line.startsWith(begin))?.slice(begin.length));
    const shown = element("small", "", { className: "cause" });
    shown.append(element("bdi", found[0] ?? found[1] ?? lines[0]));
    return shown;
  };
  const counted = (number) => {
    const all = trials.length, these = number === all ? `${all} ${all === 1 ? "trial" : "trials"}` : `${number} of ${all} trials are looked at`;
    return number > ROWS ? `${these}, the first ${ROWS} are listed` : these;
  };
  const list = (shown) => {
    const key = sort.replace(/^-/, "") || "m", way = sort ? (sort[0] === "-" ? -1 : 1) : sign, table = find("rows");
    const order = (left, right) => {
      const [a, b] = [left, right].map((trial) => value(trial, key));
      if (a === null || b === null) return (a === null) - (b === null) || left.number - right.number;
      return way * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))) || left.number - right.number;
    };
    const sorted = [...shown].sort(order), heads = [...table.tHead.rows[0].cells], keys = heads.map((head) => head.dataset.key);
    table.caption.textContent = counted(sorted.length);
    heads.forEach((head) => { if (head.dataset.key === key) head.ariaSort = way < 0 ? "descending" : "ascending"; else head.removeAttribute("aria-sort"); });
    table.tBodies[0].replaceChildren(...sorted.slice(0, ROWS).map((trial) => {
      const row = document.createElement("tr"), head = element("th", `${trial.number} `, { scope: "row" }), job = document.createElement("td"), state = document.createElement("td");
      if (trial.job) {
        head.prepend(element("input", "", { type: "checkbox", value: trial.job, checked: chosen.has(trial.job), ariaLabel: `Show the curve of trial ${trial.number}` }), " ");
        job.append(element("a", trial.job, { href: `/jobs/${trial.job}` }));
      } else job.textContent = "-";
      state.append(element("span", trial.state, { className: `state ${trial.state}` }));
      if (trial.state === "failed") state.append(cause(trial.reason));
      row.append(head, state, element("td", exact(trial.metric) ?? "-"), job, ...keys.slice(4).map((one) => { const cell = document.createElement("td"); cell.append(element("bdi", exact(value(trial, one)) ?? "-")); return cell; }));
      return row;
    }));
    find("more")?.remove();
  };

  const curves = async () => {
    const jobs = [...chosen].slice(0, CURVES), look = looks();
    find("curves-part").hidden = false;
    find("curves-key").hidden = jobs.length > 0;
    find("curves").hidden = !jobs.length;
    if (!jobs.length) return;
    const found = await Promise.all(jobs.map(async (job) => {
      const answer = await edtFetch(`/api/v1/jobs/${job}/metrics?${new URLSearchParams({ name: metric, points: 300 })}`);
      return [job, answer === null ? null : await answer.json()];
    }));
    const names = new Map(trials.map((trial) => [trial.job, `trial ${trial.number}`]));
    open("curves").setOption({
      ...common(look), grid: { ...grid, top: 40 }, tooltip: { trigger: "axis", renderMode: "richText", valueFormatter: exact }, legend: { top: 0, type: "scroll", textStyle: { color: look.text } },
      xAxis: side({ name: "step" }, look, { nameGap: 26, min: "dataMin" }), yAxis: side({ name: metric }, look, { nameGap: 46 }),
      series: found.filter(([, data]) => data).map(([job, data], number) => {
        const color = edtColour(`hue-${number % 8}`).fill, type = number < 8 ? "solid" : "dashed";
        return { name: names.get(job) ?? job, type: "line", showSymbol: data.step.length === 1, itemStyle: { color }, lineStyle: { color, type }, data: data.step.map((step, point) => [step, data.values[metric][point]]).filter(([, one]) => one !== null) };
      }),
    }, true);
    find("curves").dataset.curves = found.length;
  };

  const bounds = () => {
    const now = new Map(axes().map((axis) => [axis.key, axis]));
    for (const row of rows()) for (const input of row.querySelectorAll("[data-bound]")) {
      const axis = now.get(row.dataset.axis), end = +input.dataset.bound, bound = within.get(axis.key)?.[0]?.[end];
      input.setCustomValidity("");
      input.value = bound === undefined ? "" : axis.isText ? axis.texts[end ? Math.floor(bound) : Math.ceil(bound)] ?? "" : exact(bound);
    }
  };
  const show = (isAll = true) => {
    const now = axes(), look = looks(), shown = looked(now);
    if (isAll) { parallel(now, look); course(now, look); }
    plane(now, look, new Set(shown));
    list(shown);
    place.dataset.trials = trials.length;
    place.dataset.looked = shown.length;
  };
  const remember = () => {
    const query = new URLSearchParams({ tab: "progress", ...(sort ? { sort } : {}) });
    for (const form of ["axes", "plane"]) for (const [name, one] of new FormData(find(form))) query.append(name, one);
    for (const [key, [first]] of within) if (first) query.append("within", [key, ...first.map(exact)].join("~"));
    history.replaceState(null, "", `?${query}`);
  };
  const draw = async () => {
    const answer = await edtFetch(url);
    if (answer === null) return; // the pictures stay
    trials = (await answer.json()).trials ?? [];
    if (!trials.length) return;
    for (const id of ["axes", "parallel", "parallel-key", "pair"]) find(id).hidden = false;
    const isNew = !charts.parallel;
    show();
    if (isNew) { bounds(); listen(); curves(); }
  };

  // Looks at what is within the bounds of an axis that were written; false, and a word at the field, if they make no sense.
  const bounded = (row) => {
    const axis = axes().find(({ key }) => key === row.dataset.axis), inputs = [...row.querySelectorAll("[data-bound]")];
    const [low, high] = inputs.map(({ value: text }, index) => (text.trim() === "" ? [-Infinity, Infinity][index] : axis.isText ? axis.texts.indexOf(text.trim()) : Number(text)));
    const wrong = [low, high].map((one) => (axis.isText ? one === -1 && `no trial has this value of ${axis.name}` : Number.isNaN(one) && "this is no number"));
    if (!wrong[0] && !wrong[1] && low > high) wrong[1] = "this is less than the field before it";
    inputs.forEach((input, index) => input.setCustomValidity(wrong[index] || ""));
    const first = inputs.find((input) => !input.checkValidity());
    if (first) { first.reportValidity(); return false; }
    const ends = axis.isText ? [0, axis.texts.length - 1] : [axis.key === "m" ? axis.lane : axis.low, axis.high];
    within.set(axis.key, low === -Infinity && high === Infinity ? [] : [[Math.max(low, ends[0]), Math.min(high, ends[1])]]);
    return true;
  };

  const listen = () => {
    charts.parallel.on("axisareaselected", ({ parallelAxisId, intervals }) => {
      if (JSON.stringify(within.get(parallelAxisId) ?? []) === JSON.stringify(intervals)) return;
      within.set(parallelAxisId, intervals);
      remember();
      bounds();
      show(false);
    });
    charts.scatter.on("brushEnd", ({ areas }) => {
      const range = areas[0]?.coordRange ?? [[], []];
      ["x", "y"].forEach((name, index) => within.set(find("plane").elements[name].value, range[index].length ? [range[index]] : []));
      remember();
      bounds();
      show();
    });
    for (const id of ["axes", "plane"]) find(id).addEventListener("change", ({ target }) => {
      if ("bound" in target.dataset) {
        if (!bounded(target.closest("tr"))) return;
      }
      remember();
      show();
    });
    find("axes").addEventListener("submit", (event) => event.preventDefault());
    find("axes").addEventListener("click", ({ target }) => {
      if (target.id === "all") within.clear();
      const row = target.closest("[data-move]")?.closest("tr");
      if (row) { if (target.dataset.move < 0) row.previousElementSibling?.before(row); else row.nextElementSibling?.after(row); target.focus(); }
      if (row || target.id === "all") { remember(); bounds(); show(); }
    });
    find("rows").tHead.addEventListener("click", (event) => {
      const key = event.target.closest("a") && event.target.closest("th").dataset.key;
      if (!key) return;
      event.preventDefault();
      sort = sort === key ? `-${key}` : key;
      remember();
      show(false);
    });
    find("rows").addEventListener("change", ({ target }) => {
      if (target.checked) chosen.add(target.value); else chosen.delete(target.value);
      curves();
    });
  };
  document.body.addEventListener("edt:changed", () => { timer ??= setTimeout(() => { timer = null; if (!document.hidden) draw(); }, EVERY); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => trials.length && (show(), curves()));
  addEventListener("resize", () => Object.values(charts).forEach((chart) => chart.resize()));
  draw();
})();
