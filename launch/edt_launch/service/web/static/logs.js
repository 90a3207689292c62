// Goes on with a log that the page begins: reads what is appended, and sticks to the end while that is shown.
"use strict";
(() => {
  const MOST = 5000; // lines that are kept
  const LONGEST = 131072; // bytes of a line that has no end
  const SAID = 5000; // milliseconds
  const log = document.getElementById("log");
  const note = document.getElementById("log-note");
  if (!log?.dataset.follow) return;
  const STEERING = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g;
  const COLOUR = /\x1b\[([0-9;]{0,32})m/;
  const OF_MANY = /[34]8;(?:5;\d+|2;\d+;\d+;\d+)/g;

  // What the codes of a sequence make of a look.
  const styled = ({ colour, isBold }, codes) => {
    for (const code of codes.replace(OF_MANY, "39").split(";")) {
      if (code === "" || code === "0") {
        colour = "";
        isBold = false;
      } else if (code === "1" || code === "22") isBold = code === "1";
      else if (code === "39") colour = "";
      else if (/^[39][1-7]$/.test(code)) colour = `ansi-${code[1]}`;
    }
    return { colour, isBold };
  };
  // A line as the page begins them: in pieces of one look each, of which colours are classes; all else is text.
  const drawn = ([offset, line]) => {
    const row = document.createElement("span");
    const href = `${log.dataset.place}${offset}#line`;
    const place = document.createElement("a");
    row.append(Object.assign(place, { className: "place", href, tabIndex: -1, ariaHidden: "true" }));
    let look = { colour: "", isBold: false };
    const last = line.replace(/\r+$/, "").split("\r").pop();
    last.split(COLOUR).forEach((part, at) => {
      if (at % 2) {
        look = styled(look, part);
        return;
      }
      const textContent = part.replace(STEERING, "");
      const className = `${look.colour} ${look.isBold ? "bold" : ""}`.trim();
      if (!textContent) return;
      row.append(className ? Object.assign(document.createElement("span"), { className, textContent }) : textContent);
    });
    row.append("\n");
    return row;
  };
  // Adds a line to those that are shown, if it is one of the rank that is asked for.
  const begin = new RegExp(`^(?:${log.dataset.begin})`);
  const add = (lines, at, bytes) => {
    const line = new TextDecoder().decode(bytes);
    if (begin.test(line)) lines.push([at, line.replace(begin, "")]);
    return lines;
  };
  const isAtEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  let isNew = true;
  let missed = 0;
  let offset = Number(log.dataset.start); // where the next line begins, in bytes

  const show = (added) => {
    const sticks = isAtEnd();
    if (isNew) log.replaceChildren();
    isNew = false;
    log.append(...added.slice(-MOST).map(drawn));
    while (log.childElementCount > MOST) log.firstElementChild.remove();
    missed = sticks ? 0 : missed + added.length;
    if (sticks) log.scrollTop = log.scrollHeight;
    tell();
  };
  // What screen readers read out changes every five seconds at most.
  let next = 0;
  let telling = null;
  const tell = () => {
    const wait = Math.max(0, next - Date.now());
    telling ??= setTimeout(() => {
      telling = null;
      next = Date.now() + SAID;
      note.textContent = missed ? `${missed} new ${missed === 1 ? "line" : "lines"} below. ` : "";
    }, wait);
  };
  log.addEventListener("scroll", () => {
    if (!missed || !isAtEnd()) return;
    missed = 0;
    tell();
  });

  const follow = async (signal) => {
    const answer = await fetch(`${log.dataset.follow}&after=${offset}`, { signal });
    if (answer.status === 401) return null; // the light says that the session has ended
    if (!answer.ok) throw new Error(`${answer.status}`);
    const reader = answer.body.getReader();
    let rest = new Uint8Array();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return rest.length ? add([], offset, rest) : [];
      const lines = [];
      const bytes = new Uint8Array(rest.length + value.length);
      bytes.set(rest);
      bytes.set(value, rest.length);
      let at = 0;
      for (let end; (end = bytes.indexOf(10, at)) >= 0; at = end + 1) {
        add(lines, offset + at, bytes.subarray(at, end));
      }
      if (bytes.length - at > LONGEST) {
        add(lines, offset + at, bytes.subarray(at));
        at = bytes.length;
      }
      offset += at;
      rest = bytes.subarray(at);
      if (lines.length) show(lines);
    }
  };
  // One stream while the page is seen; a browser has six connections for a host.
  let stream = null;
  let isOver = false;
  const keepOn = async () => {
    if (stream || isOver || document.hidden) return;
    stream = new AbortController();
    const { signal } = stream;
    try {
      const halfLine = await follow(signal);
      if (halfLine === null) {
        isOver = true;
        return;
      }
      isOver = (await (await fetch(log.dataset.job)).json()).ended !== null;
      if (!isOver) throw new Error("the service has ended the stream");
      show(halfLine);
    } catch {
      if (!signal.aborted) {
        note.textContent = "The log cannot be read just now; it is tried again. ";
        setTimeout(keepOn, 2000 + 3000 * Math.random());
      }
    }
    stream = null;
    if (signal.aborted) keepOn(); // it has been seen again meanwhile
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stream?.abort();
    else keepOn();
  });
  log.scrollTop = log.scrollHeight;
  keepOn();
})();
