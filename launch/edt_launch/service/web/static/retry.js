// Tries again to load a page that could not be made.
"use strict";
setTimeout(() => location.reload(), 5000);
