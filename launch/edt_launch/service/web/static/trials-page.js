// The page of a search's progress: draws trials, and follows what is looked at, sorted and chosen.
"use strict";
(() => {
  const { keepDrawn, palette } = edtPictures;
  const { METRIC, axisRows, exact, find, list, lookedAt, open, readAxes, state } = edtTrials;
  const { intervals } = state;

  // The address says what is looked at.
  const recall = () => {
    const query = new URLSearchParams(location.search);
    state.sort = query.get("sort") ?? "";
    for (const one of query.getAll("within")) {
      const [, key, low, high] = /^(.*)~([^~]+)~([^~]+)$/.exec(one) ?? [];
      if (key && low <= +high) intervals.set(key, [[+low, +high]]);
    }
  };
  const remember = () => {
    const { sort } = state;
    const query = new URLSearchParams({ tab: "progress", ...(sort ? { sort } : {}) });
    for (const form of ["axes", "plane"]) {
      for (const [name, value] of new FormData(find(form))) query.append(name, value);
    }
    for (const [key, [first]] of intervals) {
      if (first) query.append("within", [key, ...first.map(exact)].join("~"));
    }
    history.replaceState(null, "", `?${query}`);
  };

  const boundsOf = (row) => [...row.querySelectorAll("[data-bound]")];
  const showBounds = () => {
    const axes = readAxes();
    axisRows().forEach((row, number) => {
      const { key, texts } = axes[number];
      boundsOf(row).forEach((input, end) => {
        const bound = intervals.get(key)?.[0]?.[end];
        const text = texts?.[end ? Math.floor(bound) : Math.ceil(bound)];
        input.setCustomValidity("");
        input.value = (texts ? text : exact(bound)) ?? "";
      });
    });
  };
  const parseBound = (text, texts, unbounded) => {
    if (text === "") return unbounded;
    if (!texts) return Number(text);
    return texts.includes(text) ? texts.indexOf(text) : NaN;
  };
  // Looks at what a row's bounds say; false, which the field tells, if they make no sense.
  const readBounds = (row) => {
    const { key, name, texts, lane, low, high } = readAxes().find((axis) => axis.key === row.dataset.axis);
    const inputs = boundsOf(row);
    const [from, to] = inputs.map(({ value }, end) => parseBound(value.trim(), texts, end ? Infinity : -Infinity));
    const problem = texts ? `no trial has this value of ${name}` : "this is no number";
    inputs[0].setCustomValidity(Number.isNaN(from) ? problem : "");
    inputs[1].setCustomValidity(
      Number.isNaN(to) ? problem : from > to ? "this is less than the field before it" : "",
    );
    if (!inputs.every((input) => input.reportValidity())) return false;
    const ends = texts ? [0, texts.length - 1] : [key === METRIC ? lane : low, high];
    const isUnbounded = from === -Infinity && to === Infinity;
    intervals.set(key, isUnbounded ? [] : [[Math.max(from, ends[0]), Math.min(to, ends[1])]]);
    return true;
  };

  // The first picture shows by itself which trials are looked at.
  const showLookedAt = (axes = readAxes(), colours = palette()) => {
    const looked = lookedAt(axes);
    edtTrials.drawScatter(axes, colours, new Set(looked));
    list(looked);
    Object.assign(find("parallel").dataset, { trials: state.trials.length, looked: looked.length });
  };
  const show = () => {
    const axes = readAxes();
    const colours = palette();
    edtTrials.drawParallel(axes, colours);
    edtTrials.drawObjective(axes, colours);
    showLookedAt(axes, colours);
  };

  const followPictures = () => {
    open("parallel").on("axisareaselected", ({ parallelAxisId: key, intervals: selected }) => {
      if (JSON.stringify(intervals.get(key) ?? []) === JSON.stringify(selected)) return;
      intervals.set(key, selected);
      remember();
      showBounds();
      showLookedAt();
    });
    open("scatter").on("brushEnd", ({ areas }) => {
      const { x, y } = find("plane").elements;
      [x, y].forEach(({ value }, index) => {
        const range = areas[0]?.coordRange?.[index];
        intervals.set(value, range ? [range] : []);
      });
      remember();
      showBounds();
      show();
    });
  };
  const followForms = () => {
    const changed = ({ target }) => {
      if ("bound" in target.dataset && !readBounds(target.closest("tr"))) return;
      remember();
      show();
    };
    for (const id of ["axes", "plane"]) find(id).addEventListener("change", changed);
    find("axes").addEventListener("submit", (event) => event.preventDefault());
    find("axes").addEventListener("click", ({ target }) => {
      const row = target.closest("[data-move]")?.closest("tr");
      if (target.id === "all") intervals.clear();
      else if (!row) return;
      else if (target.dataset.move < 0) row.previousElementSibling?.before(row);
      else row.nextElementSibling?.after(row);
      target.focus(); // a row that is moved takes it away
      remember();
      showBounds();
      show();
    });
  };
  const followTable = () => {
    find("rows").tHead.addEventListener("click", (event) => {
      const key = event.target.closest("a") && event.target.closest("th").dataset.key;
      if (!key) return;
      event.preventDefault();
      state.sort = state.sort === key ? `-${key}` : key;
      remember();
      showLookedAt();
    });
    find("more").addEventListener("click", (event) => {
      event.preventDefault();
      state.listed *= 2;
      showLookedAt();
    });
    find("rows").addEventListener("change", ({ target }) => {
      state.chosen[target.checked ? "add" : "delete"](target.value);
      edtTrials.drawCurves();
    });
  };

  // A picture that is drawn anew forgets what is being dragged in it: that waits until the pointer is released.
  let release = () => {};
  let released = Promise.resolve();
  const followPointer = () => {
    for (const id of ["parallel", "scatter"]) {
      find(id).addEventListener("pointerdown", () => {
        released = new Promise((done) => { release = done; });
      });
    }
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => release());
  };

  const redraw = async () => {
    const search = await edtFetchJson(find("parallel").dataset.url);
    await released;
    if (!search?.trials?.length) return; // the pictures stay
    const isFirst = !state.trials.length;
    state.trials = search.trials;
    for (const id of ["axes", "parallel-key", "pair"]) find(id).hidden = false;
    show();
    if (!isFirst) return;
    showBounds();
    followPictures();
    followForms();
    followTable();
    edtTrials.drawCurves();
  };
  const recoloured = () => {
    if (!state.trials.length) return;
    show();
    edtTrials.drawCurves();
  };
  recall();
  followPointer();
  keepDrawn(redraw, { recoloured });
})();
