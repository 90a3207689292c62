// Goes on with a log that the page begins: reads what is appended, and sticks to the end while that is shown.
"use strict";
(() => {
  const MOST = 5000; // lines that are kept
  const log = document.getElementById("log"), note = document.getElementById("log-note");
  if (!log?.dataset.follow) return;
  const STEERING = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g;
  const plain = (line) => line.replace(STEERING, "").replace(/\r+$/, "").split("\r").pop();
  const isAtEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  let lines = [], missed = 0;

  const show = (added) => {
    const sticks = isAtEnd();
    lines.push(...added.map(plain));
    lines = lines.slice(-MOST);
    log.textContent = lines.join("\n") + "\n";
    missed = sticks ? 0 : missed + added.length;
    if (sticks) log.scrollTop = log.scrollHeight;
    note.textContent = missed ? `${missed} new lines below. ` : "";
  };
  log.addEventListener("scroll", () => { if (isAtEnd()) { missed = 0; note.textContent = ""; } });

  const follow = async () => {
    const answer = await fetch(log.dataset.follow);
    if (!answer.ok) throw new Error(`${answer.status}`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    lines = [];
    for (;;) {
      const { value, done } = await reader.read();
      if (done) { if (rest) show([rest]); return; }
      const parts = (rest + value).split("\n");
      rest = parts.pop().slice(-65536);
      if (parts.length) show(parts);
    }
  };
  const keepOn = async () => {
    try {
      await follow();
    } catch {
      note.textContent = "The log cannot be read just now; it is tried again. ";
      setTimeout(keepOn, 2000 + 3000 * Math.random());
    }
  };
  log.scrollTop = log.scrollHeight;
  keepOn();
})();
