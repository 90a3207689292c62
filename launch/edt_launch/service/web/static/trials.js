// The trials of a search, their axes, and the table of those that are looked at.
"use strict";
(() => {
  const METRIC = "m"; // keys of axes; that of a parameter begins with "p."
  const NUMBER = "n";
  const find = (id) => document.getElementById(id);
  const { metric, objective } = find("parallel").dataset;
  const sign = objective === "maximize" ? -1 : 1; // the less the metric times this, the better
  // The intervals of an axis are of numbers, or of the places of its texts; what is chosen are jobs.
  const state = { trials: [], sort: "", intervals: new Map(), chosen: new Set(), listed: 100 };

  const exact = (value) => edtPictures.rounded(value, 4);
  const valueOf = (trial, key) => {
    if (key === METRIC) return trial.metric;
    return key === NUMBER ? trial.number : (trial.parameters[key.slice(2)] ?? null);
  };

  // An axis as its row in the form has it. Failed trials are in a lane below the metric's values.
  const readAxis = (row) => {
    const { axis: key, name } = row.dataset;
    const isChecked = (name) => row.querySelector(`[name=${name}]`)?.checked ?? false;
    const values = state.trials.map((trial) => valueOf(trial, key)).filter((value) => value !== null);
    const axis = { key, name, isShown: isChecked("axis"), isFlipped: isChecked("flip") };
    if ("texts" in row.dataset) return { ...axis, texts: [...new Set(values.map(String))].sort() };
    const isLog = isChecked("log") && values.every((value) => value > 0);
    const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [1, 1];
    const lane = isLog ? low / (high / low || 2) ** 0.15 : low - 0.15 * (high - low || 1);
    return { ...axis, isLog, low, high, lane };
  };
  const axisRows = () => [...find("axes").querySelectorAll("[data-axis]")];
  const readAxes = () => axisRows().map(readAxis);

  const position = (trial, { key, texts, lane }) => {
    const value = valueOf(trial, key);
    if (value === null) return key === METRIC ? lane : "-";
    return texts ? String(value) : value;
  };
  const isWithin = (trial, axis) => {
    const intervals = state.intervals.get(axis.key) ?? [];
    const at = axis.texts ? axis.texts.indexOf(String(valueOf(trial, axis.key))) : position(trial, axis);
    return !intervals.length || intervals.some(([low, high]) => low <= at && at <= high);
  };
  const lookedAt = (axes) => state.trials.filter((trial) => axes.every((axis) => isWithin(trial, axis)));

  const element = (name, properties, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const cell = (...children) => element("td", {}, ...children);
  const text = (value) => element("bdi", {}, value ?? "-");
  // The line of a failure that says most, as in failure_text.py.
  const cause = (reason) => {
    const lines = (reason ?? "").split(/\r?\n/);
    const after = (start) => lines.find((line) => line.startsWith(start))?.slice(start.length);
    return element("small", { className: "cause" }, text(after("cause: ") ?? after("first failure: ") ?? lines[0]));
  };
  const checkbox = ({ job, number }) => {
    const ariaLabel = `Show the curve of trial ${number}`;
    return element("input", { type: "checkbox", value: job, checked: state.chosen.has(job), ariaLabel });
  };
  const tableRow = (trial, parameters) => {
    const { job, number, metric, reason } = trial;
    const head = element("th", { scope: "row" }, ...(job ? [checkbox(trial), " "] : []), `${number} `);
    const shown = cell(element("span", { className: `state ${trial.state}` }, trial.state));
    if (trial.state === "failed") shown.append(cause(reason));
    const link = job ? element("a", { href: `/jobs/${job}` }, job) : "-";
    const values = parameters.map((key) => cell(text(exact(valueOf(trial, key)))));
    return element("tr", {}, head, shown, cell(exact(metric) ?? "-"), cell(link), ...values);
  };

  // Trials without a value are the last ones.
  const compareBy = (key, direction) => (left, right) => {
    const [a, b] = [left, right].map((trial) => valueOf(trial, key));
    const byNumber = left.number - right.number;
    if (a === null || b === null) return (a === null) - (b === null) || byNumber;
    const areNumbers = typeof a === "number" && typeof b === "number";
    return direction * (areNumbers ? a - b : String(a).localeCompare(String(b))) || byNumber;
  };
  const counted = (looked) => {
    const all = state.trials.length;
    const are = looked < all ? `of ${all} trials are looked at` : all === 1 ? "trial" : "trials";
    return `${looked} ${are}${looked > state.listed ? `, the first ${state.listed} are listed` : ""}`;
  };
  const list = (trials) => {
    const { sort } = state;
    const table = find("rows");
    const key = sort.replace(/^-/, "") || METRIC;
    const direction = sort ? (sort[0] === "-" ? -1 : 1) : sign;
    const heads = [...table.tHead.rows[0].cells];
    for (const head of heads) {
      head.ariaSort = head.dataset.key !== key ? null : direction < 0 ? "descending" : "ascending";
    }
    const parameters = heads.slice(4).map((head) => head.dataset.key);
    const rows = [...trials].sort(compareBy(key, direction)).slice(0, state.listed);
    table.caption.textContent = counted(trials.length);
    table.tBodies[0].replaceChildren(...rows.map((trial) => tableRow(trial, parameters)));
    find("more").hidden = trials.length <= state.listed;
  };

  window.edtTrials = {
    METRIC, NUMBER, axisRows, exact, find, list, lookedAt, metric, position, readAxes, sign, state, valueOf,
  };
})();
