// Shows pages that ask before something is done as dialogs; says what goes wrong.
"use strict";
(() => {
  const SHOWN = 12000; // milliseconds for which a message is shown
  const dialog = document.getElementById("dialog");
  const isPlain = (event) => !(event.ctrlKey || event.metaKey || event.shiftKey || event.button);

  const toasts = document.getElementById("toasts");
  const say = (text, className = "", undo = "") => {
    const message = Object.assign(document.createElement("p"), { textContent: text, className });
    if (undo) {
      const link = Object.assign(document.createElement("a"), { href: undo, textContent: "Undo" });
      link.dataset.dialog = "";
      message.append(" ", link);
    }
    (dialog?.open ? dialog : document.body).append(toasts); // what is outside an open dialog is out of reach
    toasts.replaceChildren(message);
    if (!undo) setTimeout(() => message.remove(), SHOWN); // what can be clicked stays until the next message
  };
  window.edtSay = say;
  // What a script of a page asks the service for; null if anything is wrong, which is told.
  window.edtFetchJson = async (address) => {
    const answer = await fetch(address).catch(() => null);
    if (answer?.ok) return answer.json();
    if (answer?.status === 401) return null; // the light says that the session has ended
    const problem = await answer?.json().catch(() => null);
    if (problem?.detail) say(problem.next ? `${problem.detail}: ${problem.next}` : problem.detail);
    return null; // without an answer, the light says that there is no connection
  };

  // What the page shows is gone or refused: the service says so.
  document.addEventListener("htmx:response:error", ({ target, detail }) => {
    if (target.id === "page" && [403, 404, 410].includes(detail.ctx.response.status)) location.reload();
  });

  // What may be opened and closed stays as it is when the page around it is brought up to date.
  const opened = new Set();
  const note = ({ target }) => {
    if (target.id) opened[target.open ? "add" : "delete"](target.id);
  };
  document.addEventListener("toggle", note, true); // it does not bubble
  document.addEventListener("htmx:after:swap", () => {
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  });

  // A request for what a dialog shows; null if there is no answer, which is told, or nobody is logged on.
  const ask = async (address, options = {}) => {
    const answer = await fetch(address, { ...options, headers: { "HX-Request": "true" } }).catch(() => null);
    if (!answer) say("The service does not answer, so nothing may have been done. Try again when it does.");
    if (!answer?.headers.has("HX-Redirect")) return answer;
    location = `/logon?next=${encodeURIComponent(location.pathname + location.search)}`;
    return null;
  };
  const show = (text) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    document.body.append(toasts);
    dialog.replaceChildren(...(page.getElementById("content") ?? page.body).childNodes);
    const isNew = !dialog.open;
    if (isNew) dialog.showModal();
    // Never on the button that does it: on the question, or on what is said.
    const said = dialog.querySelector("[role=alert]") ?? dialog.querySelector("[role=status]:not(:empty)");
    const first = (isNew ? null : said) ?? dialog.querySelector("h1");
    first.tabIndex = -1;
    first.focus();
  };
  dialog?.addEventListener("close", () => document.body.append(toasts));
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-dialog], a[data-close]");
    if (!link || !isPlain(event)) return;
    if ("close" in link.dataset) {
      if (dialog.open) {
        event.preventDefault();
        dialog.close();
      }
      return;
    }
    event.preventDefault();
    const answer = await ask(link.href);
    if (answer) show(await answer.text());
  });
  // A form whose choices apply at once.
  document.addEventListener("change", ({ target }) => target.closest("form[data-apply]")?.requestSubmit());

  // A form is sent once, however often its button is clicked; after 3 s, it may have been stopped.
  const onTheirWay = new Set();
  addEventListener("pageshow", () => onTheirWay.clear());
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.enctype === "multipart/form-data") return; // sent by fields.js
    if (onTheirWay.has(form)) event.preventDefault();
    else if ("dialog" in form.dataset) {
      event.preventDefault();
      const address = event.submitter?.getAttribute("formaction") ?? form.getAttribute("action");
      const answer = await ask(`${address}?${new URLSearchParams(new FormData(form, event.submitter))}`);
      if (answer) show(await answer.text());
    } else if (form.method === "post") {
      onTheirWay.add(form);
      if (!dialog.contains(form)) return setTimeout(() => onTheirWay.delete(form), 3000);
      event.preventDefault();
      await send(form, event.submitter);
    }
  });
  const send = async (form, submitter) => {
    const body = new URLSearchParams(new FormData(form, submitter));
    const answer = await ask(form.getAttribute("action"), { method: "POST", body });
    onTheirWay.delete(form);
    if (answer === null) return;
    if (!answer.ok || !answer.redirected) show(await answer.text());
    else if (new URL(answer.url).pathname !== location.pathname) location = answer.url;
    else {
      const done = dialog.querySelector("h1").textContent.replace(/\?$/, "");
      dialog.close();
      say(`Done: ${done.trim()}.`, "good", form.dataset.undo);
      document.body.dispatchEvent(new CustomEvent("edt:changed"));
    }
  };
})();
