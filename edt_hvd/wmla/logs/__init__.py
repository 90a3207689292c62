"""What becomes of a training's results: loggers, files, charts."""
