"""``python -m edt_launch.agent``: what the launcher starts on each host."""

from edt_launch.agent.main import main

if __name__ == "__main__":
    main()
