// Keeps a page as the service is: one stream of all jobs, whose first event is the whole state.
"use strict";
(() => {
  const GATHER = 500; // milliseconds for which changes are gathered
  const states = new Map();
  const light = document.getElementById("light");
  let source = null;
  let timer = null;
  let lostAt = null;
  let isKnown = false;

  const duration = (seconds) => {
    const units = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
    let rest = Math.max(0, Math.round(seconds));
    const parts = units.map(([size, unit]) => {
      const count = Math.floor(rest / size);
      rest %= size;
      return [count, unit];
    });
    const first = parts.findIndex(([count]) => count);
    if (first < 0) return "0s";
    const shown = parts.slice(first, first + 2).filter(([count]) => count);
    return shown.map((part) => part.join("")).join(" ");
  };
  const FIELDS = {
    size: (job) => (job.size === job.target ? `${job.size}` : `${job.size}→${job.target}`),
    share: (job) => (job.share === null ? "-" : `${+job.share.toFixed(1)}`),
    progress: ({ step, total_steps: total }) => {
      if (step === null) return "-";
      return total ? `${Math.floor((100 * step) / total)}%` : `step ${step}`;
    },
    eta: (job) => (job.eta === null ? "-" : duration(job.eta)),
    loss: (job) => (job.loss === null ? "-" : `${+job.loss.toPrecision(4)}`),
  };
  const patch = (job, rows) => {
    for (const cell of rows.flatMap((row) => [...row.querySelectorAll("[data-field]")])) {
      const text = FIELDS[cell.dataset.field](job);
      if (cell.textContent !== text) cell.textContent = text;
    }
  };
  setInterval(() => {
    for (const one of document.querySelectorAll("[data-until]")) {
      const left = one.dataset.until - Date.now() / 1000;
      one.textContent = left < 1 ? "now" : `in ${duration(left)}`;
    }
  }, 1000);
  setInterval(() => {
    for (const one of document.querySelectorAll("time:not([data-until])")) {
      const ago = (Date.now() - Date.parse(one.dateTime)) / 1000;
      one.textContent = Math.abs(ago) < 1 ? "now" : ago > 0 ? `${duration(ago)} ago` : `in ${duration(-ago)}`;
    }
  }, 10000);
  const refetch = () => {
    timer ??= setTimeout(() => {
      timer = null;
      document.body.dispatchEvent(new CustomEvent("edt:changed"));
    }, GATHER);
  };
  // Some parts change while no job does.
  setInterval(() => {
    if (!document.hidden && document.querySelector("[data-goes-on]")) refetch();
  }, 5000);
  const take = (message) => {
    const { jobs, gone } = JSON.parse(message.data);
    // At first, something may have happened since the page was made.
    let isOther = !isKnown || lostAt !== null || gone.length > 0;
    const rows = Map.groupBy(document.querySelectorAll("[data-job]"), (row) => row.dataset.job);
    for (const job of jobs) {
      const shape = `${job.state} ${job.wanted} ${job.target} ${job.reason} ${JSON.stringify(job.hosts)}`;
      isOther ||= states.get(job.id) !== shape;
      states.set(job.id, shape);
      patch(job, rows.get(job.id) ?? []);
    }
    if (isKnown) {
      const detail = new Set(jobs.map((job) => job.id));
      document.body.dispatchEvent(new CustomEvent("edt:jobs", { detail }));
    }
    gone.forEach((id) => states.delete(id));
    if (isOther) refetch();
    isKnown = true;
    lostAt = null;
    light.textContent = "live";
    light.className = "on";
  };
  const lose = () => {
    lostAt ??= new Date();
    light.textContent = `no connection since ${lostAt.toISOString().slice(11, 19)} UTC: shown is the state of then`;
    light.className = "off";
    if (source.readyState === EventSource.CLOSED) { // an answer that is no stream: the browser gives up
      source = null;
      again();
    }
  };
  const again = async () => {
    const answer = await fetch("/api/v1").catch(() => null);
    if (answer?.status !== 401) {
      setTimeout(open, 2000 + 3000 * Math.random());
      return;
    }
    const link = Object.assign(document.createElement("a"), { textContent: "log on again" });
    link.href = `/logon?next=${encodeURIComponent(location.pathname + location.search)}`;
    light.replaceChildren("this session has ended: ", link);
  };
  function open() {
    if (source !== null || document.hidden) return;
    source = new EventSource("/api/v1/stream");
    source.addEventListener("jobs", take);
    source.addEventListener("error", lose);
  }
  const close = () => {
    source?.close();
    source = null;
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    lostAt ??= new Date();
    open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
})();
