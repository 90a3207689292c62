"""Jobs that seem to run: what the loop and their processes would write."""

from dataclasses import dataclass

from edt_launch.adapters.wmla.running.layout import ResultDir, executor_id
from edt_launch.service.app.home import Home
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State

ELOG = "".join(
    f"[2020-02-19 03:45:{i:02}] Train,\tTimestamp: {1582083900000 + i},\tGlobal steps: {i},"
    f"\tIteration: {i + 1},\tLoss: {2.3 / i:.5f},\tAccuracy: {0.1 * i:.5f}\n"
    for i in range(1, 6)
)
"""What the shipped callbacks write."""

TEST_LINE = "[2020-02-19 03:46:10] Test,\tTimestamp: 1582083970000,\tLoss: 0.50000,\tAccuracy: 0.80000\n"

WEIGHTS = bytes(range(256)) * 1000


@dataclass
class Player:
    """Plays the loop and the jobs of a service."""

    store: Store
    home: Home
    now: float

    def job(self, name: str) -> JobRecord:
        """The job of an exec, a driver or an application."""
        names = self.store.execs.find(name)
        return self.store.jobs.get(name if names is None or names.job is None else names.job)

    def result(self, name: str) -> ResultDir:
        return ResultDir(self.home.job(self.job(name).id).root)

    def start(self, name: str, size: int = 2, host: str = "localhost") -> None:
        """The job gets devices, and prints."""
        job = self.job(name)
        held = ((host, tuple(f"cpu{number}" for number in range(size))),)
        facts = {"size": size, "target": size, "held": held, "started": self.now - 150.384}
        self.store.jobs.move(job.id, State.STARTING, "played", self.now, **facts)
        self.store.jobs.move(job.id, State.RUNNING, "played", self.now)
        self.print(name, size)

    def print(self, name: str, size: int) -> None:
        names, result = self.store.execs.find(name), self.result(name)
        assert names is not None
        for number in range(1, size + 1):
            self.write(result, executor_id(names.id, number), f"executor {number}")
        self.write(result, names.driver, "driver")
        log = result.log_dir(names.driver, "node1")
        log.mkdir(parents=True, exist_ok=True)
        (log / "stdout").write_text(ELOG + TEST_LINE)
        result.launcher.parent.mkdir(exist_ok=True)
        (result.log / "launcher.log").write_text("edt-launch: started\n")

    def write(self, result: ResultDir, process: str, what: str) -> None:
        for stream in ("stdout", "stderr"):
            path = result.printed(process, stream)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{what} {stream} {line} é\n" for line in range(100)))

    def finish(self, name: str, state: State = State.SUCCEEDED) -> None:
        """The job has made a model, and ends."""
        result = self.result(name)
        for epoch in ("1", "final"):
            (result.train / f"model_epoch_{epoch}.pth").write_bytes(WEIGHTS)
        (result.root / "val_dict_list.json").write_text('[{"steps": 1, "loss": 0.5}]')
        job = self.job(name)
        ends = () if job.state is not State.RUNNING or state is not State.STOPPED else (State.STOPPING,)
        for step in (*ends, state):
            self.store.jobs.move(job.id, step, "played", self.now, size=0, held=())
