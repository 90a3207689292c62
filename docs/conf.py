"""Settings of the user guide: ``sphinx-build docs build/docs``."""

project = "EDT"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "EDT"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nitpicky = True
