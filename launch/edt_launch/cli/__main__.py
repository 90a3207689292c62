"""``python -m edt_launch.cli``: the command `edt`."""

from edt_launch.cli.main import main

main()
