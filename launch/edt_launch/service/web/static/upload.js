// Sends a form with large files, shows how far it is, and keeps the form if it is refused.
"use strict";
(() => {
  const form = document.querySelector("form[data-upload]");
  const button = form.querySelector("button[data-valid]");
  const shown = form.querySelector("progress");
  const said = document.getElementById("uploading");
  let isUnderWay = false;
  const tell = (text, isWrong) => {
    isUnderWay = !isWrong;
    said.textContent = text;
    said.className = isWrong ? "alert alert-danger" : "";
    said.hidden = !text;
    shown.hidden = isWrong;
    button.disabled = !isWrong;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (isUnderWay) return;
    const sent = new XMLHttpRequest();
    sent.upload.addEventListener("progress", ({ loaded, total }) => {
      shown.value = loaded / total;
      tell(loaded < total ? `${Math.floor((100 * loaded) / total)} % sent` : "Sent. The service stores it.", false);
    });
    sent.addEventListener("load", () => {
      if (sent.status < 400) {
        location = sent.responseURL;
        return;
      }
      const page = new DOMParser().parseFromString(sent.responseText, "text/html");
      const problem = page.querySelector("[role=alert]")?.firstChild ?? page.querySelector("#content p");
      tell(problem?.textContent ?? `The service answered with ${sent.status}.`, true);
    });
    sent.addEventListener("error", () => tell("The connection broke, and nothing was stored. Try again.", true));
    sent.open("POST", form.action);
    sent.send(new FormData(form));
    tell("0 % sent", false);
  });
})();
