// Buttons that copy a text of the page.
"use strict";
document.addEventListener("click", async ({ target }) => {
  const button = target.closest("button[data-copy]");
  if (!button) return;
  const copied = document.getElementById(button.dataset.copy);
  getSelection().selectAllChildren(copied);
  // Over plain HTTP, browsers offer no clipboard but the one of what is selected.
  const write = async () => {
    if (!navigator.clipboard) return document.execCommand("copy");
    await navigator.clipboard.writeText(copied.textContent);
    return true;
  };
  const isDone = await write().catch(() => false);
  edtSay(isDone ? "Copied." : "The browser does not allow it: the text is selected, copy it by the keyboard.");
});
