// Checks a form as it is filled in: its buttons are grey until it can be sent.
"use strict";
(() => {
  // Buttons for what is chosen are grey until something is.
  const grey = () => {
    for (const form of document.querySelectorAll("form[data-chosen]")) {
      const isNone = ![...form.elements].some((one) => one.checked);
      for (const button of form.querySelectorAll("button")) button.disabled = isNone;
    }
  };
  for (const name of ["change", "htmx:after:swap"]) document.addEventListener(name, grey);
  grey();

  // A file that was chosen has its name below it, a check mark if it can be one, and a bin that takes it away.
  const showFile = (input) => {
    const shown = input.closest("label").nextElementSibling;
    const file = input.files[0];
    const isKnown = !file || input.accept.split(",").some((end) => file.name.toLowerCase().endsWith(end));
    const most = Number(input.dataset.bytes);
    let problem = "";
    if (!isKnown) problem = `${file.name} is none of ${input.accept.replaceAll(",", ", ")}: choose another file`;
    else if (input.files.length > 1 && !input.multiple) problem = `${input.files.length} files were dropped: pack them into one archive`;
    else if (file?.size > most) problem = `${file.name} has ${file.size} bytes, and ${most} are allowed`;
    const isOne = !problem;
    input.setCustomValidity(problem);
    shown.hidden = !file;
    shown.querySelector("b").hidden = !isOne;
    shown.querySelector("bdi").textContent = isOne ? [...input.files].map((one) => one.name).join(", ") : input.validationMessage;
  };
  // Buttons that send a form are grey until what is written in it makes sense, and while it is sent.
  const sending = new Set();
  const check = () => {
    for (const box of document.querySelectorAll("[data-requires]")) {
      box.form.elements[box.dataset.requires].required = box.checked;
    }
    for (const least of document.querySelectorAll("[data-most]")) {
      least.max = least.form.elements[least.dataset.most].value;
    }
    // What a choice leaves without a meaning is not shown, nor sent.
    for (const part of document.querySelectorAll("[data-only]")) {
      const [name, ...values] = part.dataset.only.split(" ");
      const field = part.querySelector("input, select, textarea");
      part.hidden = field.disabled = !values.includes(field.form.elements[name].value);
    }
    document.querySelectorAll("input[type=file]").forEach(showFile);
    for (const button of document.querySelectorAll("button[data-valid]")) {
      button.disabled = sending.has(button.form) || !button.form.matches(":valid");
    }
  };
  for (const name of ["input", "change", "htmx:after:swap"]) document.addEventListener(name, check);
  window.addEventListener("pageshow", check);
  // An option may know what other fields are to be.
  document.addEventListener("change", ({ target }) => {
    for (const [name, value] of Object.entries(target.selectedOptions?.[0]?.dataset ?? {})) {
      target.form.elements[name].value = value;
    }
    check();
  });
  // A form with a file is sent in the background: if it is refused, the file stays chosen.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.enctype !== "multipart/form-data") return;
    event.preventDefault();
    if (sending.has(form)) return;
    const body = new FormData(form, event.submitter);
    sending.add(form);
    check();
    const answer = await fetch(form.action, { method: "POST", body }).catch(() => null);
    sending.delete(form);
    check();
    if (answer?.redirected) return location.assign(answer.url);
    if (!answer) return edtSay("The service does not answer, so nothing may have been done. Try again when it does.");
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const said = page.querySelector("[role=alert]") ?? page.querySelector("h1");
    said.querySelector("noscript")?.remove();
    for (const sent of page.querySelectorAll("form.act input[type=hidden]")) {
      const own = form.querySelector(`input[type=hidden][name="${sent.name}"]`);
      if (own) own.value = sent.value;
    }
    document.querySelector(".refused")?.remove();
    said.classList.add("refused");
    said.tabIndex = -1;
    form.before(said);
    said.focus();
  });
  // A file may be dropped anywhere: beside its field, the browser would leave the form for it.
  const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    const input = document.querySelector("input[type=file]");
    if (!input) return;
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
  document.addEventListener("click", ({ target }) => {
    const adding = target.closest("button[data-add]");
    const next = adding && document.querySelector(adding.dataset.add);
    if (!next) return;
    next.classList.remove("spare");
    next.querySelector("input").focus();
    adding.disabled = !document.querySelector(adding.dataset.add);
  });
  document.addEventListener("click", ({ target }) => {
    const input = target.closest(".file button")?.parentElement.previousElementSibling.querySelector("input");
    if (!input) return;
    input.value = "";
    input.dispatchEvent(new Event("change", { bubbles: true }));
    input.focus();
  });
})();
