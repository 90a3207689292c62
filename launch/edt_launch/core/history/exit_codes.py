"""What exit codes mean."""

from signal import Signals


def exit_text(exit_code: int) -> str:
    """How a process ended: "killed by SIGTERM", "exit code 1", "exit code 143 (SIGTERM)"."""
    signal = signal_name(exit_code)
    if exit_code < 0 and signal is not None:
        return f"killed by {signal}"
    return f"exit code {exit_code}" + (f" ({signal})" if signal is not None else "")


def signal_name(exit_code: int) -> str | None:
    """The signal behind an exit code: a shell's 128 + number, or a process's -number."""
    try:
        return Signals(-exit_code if exit_code < 0 else exit_code - 128).name
    except ValueError:
        return None
