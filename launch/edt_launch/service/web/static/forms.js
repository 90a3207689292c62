// Shows a page that asks before something is done as a dialog above the one that led to it.
"use strict";
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-dialog], a[data-close]");
  const dialog = document.getElementById("dialog");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  if ("close" in link.dataset) {
    if (dialog.open) { event.preventDefault(); dialog.close(); }
    return;
  }
  event.preventDefault();
  const answer = await fetch(link.href, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (answer === null || !answer.ok) { location = link.href; return; }
  dialog.innerHTML = await answer.text();
  dialog.showModal();
});
