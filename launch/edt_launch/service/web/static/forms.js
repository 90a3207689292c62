// Shows a page that asks before something is done as a dialog above the one that led to it; says what goes wrong.
"use strict";
(() => {
  const SHOWN = 12000; // milliseconds for which a message is shown
  const dialog = document.getElementById("dialog");
  const isPlain = (event) => !(event.ctrlKey || event.metaKey || event.shiftKey || event.button);

  const say = (text) => {
    const message = Object.assign(document.createElement("p"), { textContent: text });
    document.getElementById("toasts").replaceChildren(message);
    setTimeout(() => message.remove(), SHOWN);
  };
  // What a program does in a page: fetch that tells what is wrong; null if anything is.
  window.edtFetch = async (address) => {
    const answer = await fetch(address).catch(() => null);
    if (answer?.ok) return answer;
    const problem = await answer?.json().catch(() => null);
    if (problem?.detail) say(problem.next ? `${problem.detail}: ${problem.next}` : problem.detail);
    return null; // without an answer, the light says that there is no connection
  };

  // Buttons for what is chosen are grey until something is.
  const grey = () => {
    for (const form of document.querySelectorAll("form[data-chosen]")) {
      const isNone = ![...form.elements].some((one) => one.checked);
      for (const button of form.querySelectorAll("button")) button.disabled = isNone;
    }
  };
  for (const name of ["change", "htmx:after:swap"]) document.addEventListener(name, grey);
  grey();

  // What the stylesheet makes of the colours of a class, light or dark, and not forced ones: for pictures.
  window.edtColour = (name) => {
    const probe = document.body.appendChild(Object.assign(document.createElement("span"), { className: `${name} unforced` }));
    const { backgroundColor, color } = getComputedStyle(probe);
    probe.remove();
    return { fill: backgroundColor, text: color };
  };

  const show = (text) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    dialog.replaceChildren(...(page.getElementById("content") ?? page.body).childNodes);
    if (!dialog.open) dialog.showModal();
  };
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-dialog], a[data-close]");
    if (!link || !isPlain(event)) return;
    if ("close" in link.dataset) {
      if (dialog.open) { event.preventDefault(); dialog.close(); }
      return;
    }
    event.preventDefault();
    const answer = await fetch(link.href, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (answer?.ok) show(await answer.text()); else location = link.href;
  });
  document.addEventListener("click", ({ target }) => {
    const copied = target.closest("button[data-copy]");
    if (copied) navigator.clipboard?.writeText(document.getElementById(copied.dataset.copy).textContent);
  });
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if ("dialog" in form.dataset) {
      event.preventDefault();
      const address = event.submitter?.getAttribute("formaction") ?? form.getAttribute("action");
      const answer = await fetch(`${address}?${new URLSearchParams(new FormData(form, event.submitter))}`, { headers: { "HX-Request": "true" } }).catch(() => null);
      if (answer !== null) show(await answer.text());
      return;
    }
    if (!dialog.contains(form)) return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form, event.submitter));
    const answer = await fetch(form.getAttribute("action"), { method: "POST", body, headers: { "HX-Request": "true" } }).catch(() => null);
    const logOn = answer?.headers.get("HX-Redirect");
    if (answer === null) say("The service does not answer, so nothing may have been done. Try again when it does.");
    else if (logOn) location = logOn;
    else if (!answer.ok || !answer.redirected) show(await answer.text());
    else if (new URL(answer.url).pathname !== location.pathname) location = answer.url;
    else { dialog.close(); document.body.dispatchEvent(new CustomEvent("edt:changed")); }
  });
})();
