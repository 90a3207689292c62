"""The service's log."""

import logging
import sys
from typing import Any

import structlog


def set_up_logs() -> None:
    """Log to standard error: for people on a terminal, else as JSON."""
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
    ]
    shown = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, shown],
            foreign_pre_chain=shared,
        )
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for noisy in ("alembic", "uvicorn"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
