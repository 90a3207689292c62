"""Where everything passes that happens to a job: it is kept, counted, and shown."""

import os
import time

from edt_launch.core.errors import HOST_LOST
from edt_launch.core.history import events
from edt_launch.core.history.event_log import EventLog
from edt_launch.core.history.event_wording import describe
from edt_launch.core.history.job_history import JobHistory
from edt_launch.core.history.log_times import LogTimes
from edt_launch.launcher.plan import Plan
from edt_launch.launcher.run_summary import RunSummary
from edt_launch.launcher.runs.trainjob import Reporter, StatusServer
from edt_launch.launcher.view.output import Line, Logs, Ranks, is_for_the_log
from edt_launch.launcher.view.phases import Phases
from edt_launch.launcher.view.view import View


class JobMonitor:
    """Takes in the events and lines of one `edt-launch`: keeps, counts and shows them."""

    def __init__(self, plan: Plan, view: View, log: EventLog) -> None:
        self._is_verbose = plan.options.verbose
        self._view = view
        self._log = log
        self._phases = Phases()
        options = plan.options
        self.logs = Logs(plan.paths, view.message, options.max_log_size, is_single=options.single_log)
        self._log_times = LogTimes(plan.paths, view.message, time.time())
        self.ranks = Ranks()
        self.history = JobHistory()
        self.run = RunSummary()
        """Of the present run of the workers, or of the last."""
        server = StatusServer.detect(os.environ)
        self._trainjob = None if server is None else Reporter(server)
        self._away: dict[str, set[int]] = {}
        """Hosts that cannot be reached, and the slots of them that were told to have failed since."""
        self.is_quiet = False
        """Whether events are no news to the user, who has told the job to end."""

    def begin_training(self) -> None:
        """Another training begins, in the same view."""
        before = self.history
        self.history = JobHistory(
            resizes=before.resizes, standbys=before.standbys, warm_servers=before.warm_servers
        )

    def begin_run(self) -> None:
        """The workers are started again: what was said before explains nothing about that."""
        self.run = RunSummary(next_worker=self.run.next_worker)
        self.logs.begin()

    def note(self, event: events.Event) -> None:
        """An event has happened: keep it, take it in, and tell the user if it matters."""
        self._phases, event = self._phases.observe(event)
        self._log.write(event)
        self.ranks.observe(event)
        self.history.observe(event)
        self.run = self.run.observe(event)
        message = describe(event) if self._is_news(event) else None
        if message is not None and not self.is_quiet:
            self.message(message)

    def _is_news(self, event: events.Event) -> bool:
        """Whether the user has not heard of this yet; a host that is away is tried again and again."""
        match event:
            case events.HostUnreachable(host):
                self._away[host] = set()
            case events.HostReachable(host):
                self._away.pop(host, None)
            case events.Failed(_, host, slot, exit_code=code) if code == HOST_LOST and host in self._away:
                is_first = slot not in self._away[host]
                self._away[host].add(slot)
                return is_first
        return True

    def show(self, line: Line) -> None:
        """Somebody has printed a line."""
        label = None if line.worker is None else self.ranks.label(line.worker)
        is_hidden = not line.is_shown or (is_for_the_log(line) and not self._is_verbose)
        self.logs.write(line, label, is_hidden=is_hidden)
        if is_hidden:
            return
        if label is None:
            if self._is_verbose:
                self._view.line(line, "edt-launch")
        elif not self.logs.is_single:
            self._view.line(line, label)

    def message(self, text: str) -> None:
        """Tell the user something."""
        self.logs.flush()  # which may be in the same file, where lines keep their order
        self._view.message(text)

    def refresh(self) -> None:
        """Let readers of the logs and of the view see everything so far."""
        now = time.time()
        self.logs.flush()
        self._view.refresh(now, self.history)
        self._log_times.observe(now)
        if self._trainjob is not None and (problem := self._trainjob.show(now, self.history)) is not None:
            self._view.message(problem)

    def close(self) -> None:
        """Everything has happened."""
        if self._trainjob is not None:
            problem = self._trainjob.close(time.time(), self.history)
            if problem is not None:
                self._view.message(problem)
        self.logs.close()
        self._view.close(self.history)
        self._log_times.close(time.time())
