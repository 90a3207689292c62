class Recorder:
    """A view that keeps what it is shown, and calls `reaction(text)` for each line of a worker."""

    def __init__(self, reaction=lambda text: None):
        self.lines = []
        self.messages = []
        self.status = None
        self._reaction = reaction

    def line(self, line, label):
        self.lines.append((label, line.stream, line.text))
        self._reaction(line.text)

    def message(self, text):
        self.messages.append(text)

    def refresh(self, now, status):
        pass

    def close(self, status):
        self.status = status
