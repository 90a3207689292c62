"""Agents over real processes: workers like `python script.py`, only sooner, and nothing of them is left."""

import contextlib
import os
import signal
import subprocess
import sys

import psutil
import pytest

from edt_launch.agent.protocol import WINDOW, Taken
from running_agent import COMMAND, RunningAgent, script, until
from started import gone
from tiers import full

linux = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("it's a host")


@pytest.fixture(scope="module")
def program(folder):
    """Runs, in place of itself, the file that a worker's variable PROGRAM names."""
    return script(
        folder,
        """
        import os, runpy, sys
        path = os.environ.pop("PROGRAM")
        sys.argv[0] = path
        runpy.run_path(path, run_name="__main__")
        """,
        "any.py",
    )


@pytest.fixture(scope="module")
def agents():
    """Makes agents; ends them all."""
    with contextlib.ExitStack() as stack:

        def start(command, folder, **more):
            agent = RunningAgent(command, folder, **more)
            stack.callback(agent.close)
            return agent

        yield start


@pytest.fixture(scope="module")
def warm(agents, folder, program):
    """An agent whose warm server runs any program."""
    agent = agents([sys.executable, program], folder)
    assert agent.run(0, PROGRAM=script(folder, "print('warm')", "first.py")) == (0, "warm\n", "")
    (told,) = agent.warm
    assert told.refused is None
    assert {"torch", "horovod", "edt_hvd"} <= set(told.imports)
    return agent


class Serial:
    """Serial numbers."""

    def __init__(self):
        self.last = 100

    def __call__(self):
        self.last += 1
        return self.last


serial = Serial()


@pytest.fixture
def cold(agents, tmp_path):
    """Makes an agent without a warm server for a script of this text."""
    return lambda text, **more: agents(
        [sys.executable, script(tmp_path, text)], tmp_path, forks=False, **more
    )


@pytest.fixture
def fresh(agents, tmp_path):
    """Makes an agent with a warm server of its own for a script of this text."""
    return lambda text, **more: agents([sys.executable, script(tmp_path, text)], tmp_path, **more)


TEXTS = [
    "import sys; sys.exit(3)",
    "import sys; sys.exit('a text')",
    "import sys; sys.exit(None)",
    "import os; os._exit(7)",
    "import os; os.kill(os.getpid(), 9)",
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(60)",
    "import os; os.kill(os.getpid(), 1000)",
    "raise ValueError('it is broken')",
    "try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['key']",
    "this is no Python",
    "import atexit; atexit.register(print, 'late'); print('early')",
    "import sys; sys.excepthook = lambda *_: print('own hook'); 1 / 0",
    "import threading, time\nthreading.Timer(0.1, print, ['thread']).start(); print('main')",
    "print(open('/dev/stdin').read())",
    "import sys; print('no newline', end=''); print('error', file=sys.stderr)",
    "import signal; print([signal.getsignal(n) for n in signal.valid_signals()])",
    "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.set_wakeup_fd(-1))",
    "import sys; print(sys.argv, sys.orig_argv[1:], sys.path, sys.flags, sys.executable)",
    "import os; print(os.getcwd(), sorted(os.environ.items()))",
    "import os; print(os.umask(0), os.get_terminal_size.__name__, os.getpriority(0, 0))",
    "print({k: v for k, v in globals().items() if k not in ('__builtins__', '__loader__')})",
    "import __main__, inspect\nclass Own: pass\nprint(inspect.getsource(__main__.Own), Own.__module__)",
    "import sys; print([(s.encoding, s.errors, s.line_buffering) for s in (sys.stdout, sys.stderr)])",
]


@linux
def test_forked_workers_end_and_look_like_programs_that_were_just_started(agents, folder):
    """One script that runs each text in turn, so that one warm server is enough."""
    path = script(
        folder, "import os, sys\nexec(compile(os.environ['TEXT'], 'text', 'exec'), globals())", "looks.py"
    )
    variables = {"OWN": "a 'b' \udcff\n", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, path, "a b", "-m"]
    before = os.umask(0o027)
    try:
        agent = agents(command, folder, variables=variables)
        for worker, text in enumerate(TEXTS):
            direct = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
                cwd=folder,
                env={**agent.environment, "EDT_WORKER": str(worker), "TEXT": text},
            )
            found = agent.run(worker, TEXT=text)
            assert found == (direct.returncode, direct.stdout, direct.stderr), text
    finally:
        os.umask(before)


@linux
def test_a_module(agents, folder):
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "train.py").write_text("import sys; print(__name__, __spec__.name, sys.argv, sys.path[0])")
    code, out, _ = agents([sys.executable, "-m", "package.train", "a"], folder).run()
    assert (code, out) == (0, f"__main__ package.train {[str(package / 'train.py'), 'a']} {folder}\n")


@linux
def test_random_numbers_differ(warm, folder):
    text = "import random, numpy, torch; print(random.random(), numpy.random.rand(), torch.rand(1).item())"
    path = script(folder, text, "random_.py")
    first, second = (warm.run(serial(), PROGRAM=path)[1].split() for _ in range(2))
    assert not set(first) & set(second)


@linux
def test_a_worker_is_known_by_its_program_and_its_job(warm, folder, program):
    path, worker = script(folder, "import time; print('up', flush=True); time.sleep(60)", "up.py"), serial()
    warm.start(worker, PROGRAM=path)
    warm.line(worker)
    process = psutil.Process(warm.pids[worker])
    assert " ".join(process.cmdline()).rstrip() == f"{sys.executable} {program}"
    assert process.environ()["EDT_JOB"] == warm.job
    assert process.pid == os.getsid(process.pid)
    assert process.ppid() == warm.warm[-1].pid
    assert psutil.Process(process.ppid()).ppid() == warm.process.pid
    warm.kill(worker)
    assert warm.ended(worker)[0] == -signal.SIGKILL
    assert gone(process.pid)


@linux
def test_processes_of_the_programs_own(fresh):
    text = """
        import multiprocessing
        import torch

        class Own:
            def __init__(self, value):
                self.value = value

        class Squares(torch.utils.data.Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, index):
                return torch.tensor(index**2)

        def double(own):
            return Own(2 * own.value)

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(double, [Own(21)]).value)
            print(torch.cat(list(torch.utils.data.DataLoader(Squares(), 2, num_workers=2))).tolist())
    """
    assert fresh(text).run() == (0, "42\n[0, 1, 4, 9]\n", "")


FAMILY = """
    import os, signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = os.fork()
    if child:
        far = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
        print(os.getpid(), child, far.pid, flush=True)
    time.sleep(60)
"""


@linux
@pytest.mark.parametrize("is_warm", [True, False])
def test_a_killed_worker_leaves_nothing(warm, cold, folder, is_warm):
    agent, worker = (warm, serial()) if is_warm else (cold(FAMILY), 0)
    agent.start(worker, PROGRAM=script(folder, FAMILY, "family.py"))
    pids = [int(word) for word in agent.line(worker).split()]
    agent.kill(worker)
    assert agent.ended(worker)[0] == -signal.SIGKILL
    until(lambda: all(map(gone, pids)))


@linux
@pytest.mark.parametrize(
    "how, forks",
    [
        *(full("closed", True), full("hung up", True), ("killed", True)),
        *(("closed", False), ("hung up", False), ("killed", False)),
    ],
)
def test_workers_end_with_their_launcher_and_with_their_agent(agents, tmp_path, how, forks):
    agent = agents([sys.executable, script(tmp_path, FAMILY)], tmp_path, forks=forks)
    agent.start()
    *pids, far = [int(word) for word in agent.line().split()]
    servers = [told.pid for told in agent.warm]
    if how == "killed":
        agent.process.kill()
        psutil.Process(far).kill()  # the launcher finds it by its job
    else:
        agent.hang_up() if how == "hung up" else agent.close()
    until(lambda: all(map(gone, [*pids, far, *servers])))
    assert agent.process.wait(60) == (-signal.SIGKILL if how == "killed" else 0)


def test_what_workers_have_left_behind_is_killed_and_counted(cold):
    text = """
        import subprocess, sys
        stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
        child = subprocess.Popen([sys.executable, "-c", stubborn], env={}, start_new_session=True, stdout=2)
        print(child.pid)
    """
    agent = cold(text)
    code, out, _ = agent.run()
    assert code == 0
    assert not gone(int(out))
    agent.hang_up()
    agent.until(lambda: agent.swept is not None)
    assert agent.swept == 1
    assert gone(int(out))


@linux
def test_a_worker_outlives_its_server(fresh, tmp_path):
    go = tmp_path / "go"
    text = f"""
        import os, sys, time
        print('up', flush=True)
        while not os.path.exists({str(go)!r}): time.sleep(0.01)
        sys.exit(5)
    """
    agent = fresh(text)
    agent.start(0)
    agent.line()
    os.kill(agent.warm[0].pid, signal.SIGKILL)
    until(lambda: gone(agent.warm[0].pid))
    go.touch()
    assert agent.ended(0)[0] == 5
    go.unlink()
    agent.start(1)
    agent.line(1)
    assert len(agent.warm) == 2  # from another server
    os.kill(agent.warm[1].pid, signal.SIGKILL)
    until(lambda: gone(agent.warm[1].pid))
    agent.kill(1)
    assert agent.ended(1)[0] == -signal.SIGKILL
    until(lambda: gone(agent.pids[1]))


@linux
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_worker_that_ends_while_its_server_is_stopped(warm, folder, is_killed):
    go = folder / "go on"
    go.unlink(missing_ok=True)
    text = f"""
        import os, sys, time
        print('up', flush=True)
        while not os.path.exists({str(go)!r}): time.sleep(0.01)
        sys.exit(5)
    """
    worker = serial()
    warm.start(worker, PROGRAM=script(folder, text, "waits.py"))
    warm.line(worker)
    server = psutil.Process(warm.warm[-1].pid)
    server.suspend()
    try:
        if is_killed:
            os.kill(warm.pids[worker], signal.SIGKILL)
        else:
            go.touch()
        assert warm.ended(worker)[0] == (-signal.SIGKILL if is_killed else 5)
    finally:
        server.resume()


@linux
def test_a_stopped_server_is_done_without(agents, tmp_path):
    code = "from edt_launch.agent import main, workers; workers.REQUEST_TIMEOUT = 0.2; main.main()"
    path = script(tmp_path, "import os, sys; print(os.getppid()); sys.exit(6)")
    agent = agents([sys.executable, path], tmp_path, code=code)
    agent.until(lambda: agent.warm)
    server = psutil.Process(agent.warm[0].pid)
    server.suspend()
    try:
        code, out, err = agent.run(0)
    finally:
        server.resume()
    assert (code, int(out)) == (6, agent.process.pid)
    assert err == "edt-launch: the warm server has not answered for 0.2 s; this worker starts without it\n"
    assert agent.run(1)[0] == 6


@linux
def test_many_workers_leave_nothing(warm, folder):
    agent, server = psutil.Process(warm.process.pid), psutil.Process(warm.warm[-1].pid)
    path = script(folder, "import os; os._exit(0)", "nothing.py")
    before = agent.num_fds(), server.num_fds()
    for _ in range(10):
        eight = [serial() for _ in range(8)]
        for worker in eight:
            warm.start(worker, PROGRAM=path)
        assert [warm.ended(worker) for worker in eight] == [(0, "", "")] * 8
    assert server.children() == []
    until(lambda: (agent.num_fds(), server.num_fds()) == before)  # it closes sockets last


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs a module, for the server and the programs."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)

    def install(name, text):
        script(folder, text, f"{name}.py")

    return install


@linux
def test_what_the_program_imports_is_there_already(fresh, installed):
    installed("heavy", "import os; pid = os.getpid()")
    installed("broken", "raise SystemExit(9)")
    agent = fresh("import heavy, os\ntry:\n  import broken\nexcept SystemExit: pass\nprint(heavy.pid)")
    assert agent.run()[1] == f"{agent.warm[0].pid}\n"


@linux
@pytest.mark.parametrize(
    "text, reason",
    [
        (
            "import threading, time; threading.Thread(target=time.sleep, args=[60], daemon=True).start()",
            "thread",
        ),
        full("import torch; torch.ones(2000, 2000) @ torch.ones(2000, 2000)", "threads"),
        full("import torch; torch.cuda.is_initialized = lambda: True", "CUDA"),
    ],
)
def test_nothing_is_forked_from_a_process_that_has_more_than_imports(fresh, installed, text, reason):
    if reason == "threads" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core: torch starts no threads")
    installed("unfit", text)
    agent = fresh("import os, sys, unfit; print(os.getppid()); sys.exit(4)")
    code, out, _ = agent.run()
    assert (code, int(out)) == (4, agent.process.pid)
    assert reason in agent.warm[0].refused
    assert agent.run(1)[0] == 4
    assert len(agent.warm) == 1


@linux
@pytest.mark.parametrize(
    "generator, text",
    [
        ("numpy", "import numpy; numpy.random.seed(1)"),
        full("random", "import random; random.seed(1)"),
        full("torch", "import torch; torch.manual_seed(1)"),
    ],
)
def test_a_library_that_seeds_at_its_import_does_so_in_the_program(fresh, cold, installed, generator, text):
    installed("seeding", text)
    draws = {"random": "random.random()", "numpy": "numpy.random.rand()", "torch": "torch.rand(1).item()"}
    program = f"import {generator}, seeding\nprint({draws[generator]})"
    agent = fresh(program)
    found = agent.run()
    assert found == cold(program).run()
    assert agent.warm[0].refused == f"an import has seeded {generator}"


@linux
def test_a_library_that_draws_at_its_import_changes_no_numbers_of_workers(fresh, cold, installed):
    installed("drawing", "import random, numpy, torch; random.gauss(); numpy.random.randn(); torch.randn(3)")
    seeds = "random.seed(1); numpy.random.seed(1); torch.manual_seed(1)"
    prints = "print(random.gauss(), numpy.random.randn(), torch.randn(3).tolist())"
    program = f"import drawing, random, numpy, torch\n{prints}\n{seeds}\n{prints}"
    agent = fresh(program)
    first, second = (agent.run(worker)[1].splitlines() for worker in range(2))
    alone = cold(program).run()[1].splitlines()
    assert agent.warm[0].refused is None
    assert len({first[0], second[0], alone[0]}) == 3
    assert first[1] == second[1] == alone[1]


@linux
def test_a_program_that_sets_variables_for_its_imports_gets_them_in_time(fresh, installed):
    installed("reader", "import os; read = os.environ.get('READ_AT_IMPORT')")
    agent = fresh("import os\nos.environ['READ_AT_IMPORT'] = '1'\nimport reader\nprint(reader.read)")
    assert agent.run() == (0, "1\n", "")
    assert "train.py, line 2" in agent.warm[0].refused


@linux
def test_an_own_module_with_the_name_of_an_imported_one(fresh, tmp_path):
    script(tmp_path, "which = 'own'", "colorsys.py")
    assert fresh("import colorsys; print(colorsys.which)").run()[1] == "own\n"


@linux
def test_an_import_that_ends_the_interpreter(fresh, installed):
    installed("crashing", "import os, sys\nif sys.argv[0] == '-c': os.abort()\nvalue = 3")
    agent = fresh("import crashing; print(crashing.value)")
    assert agent.run(0) == agent.run(1) == (0, "3\n", "")


def test_what_cannot_be_forked_runs_all_the_same(agents, tmp_path):
    agent = agents([sys.executable, "no such file.py"], tmp_path)
    code, out, err = agent.run()
    assert (code, out) == (2, "")
    assert "can't open file" in err
    assert not agent.warm


def test_a_command_that_is_not_there(agents, tmp_path):
    found = agents(["no-such-command"], tmp_path).run()
    assert found == (127, "", "edt-launch: cannot run no-such-command: No such file or directory\n")


def test_what_is_printed_arrives_byte_by_byte_and_by_stream(cold):
    data = bytes(range(256)) * 3
    agent = cold(f"import os; os.write(1, {data!r}); os.write(2, b'\\xff' + {data!r})")
    agent.start()
    agent.until(lambda: agent.exits)
    assert agent.exits == {0: 0}
    assert agent.outputs[0, "stdout"] == data
    assert agent.outputs[0, "stderr"] == b"\xff" + data


def test_an_agent_waits_for_its_launcher_to_deal_with_output(cold):
    agent = cold("import os\nwhile True: os.write(1, bytes(65536))", acknowledges=False)
    agent.start()
    agent.until(lambda: len(agent.outputs.get((0, "stdout"), b"")) >= WINDOW)
    agent.kill()  # what else it says is not held up
    agent.until(lambda: agent.exits)
    assert len(agent.outputs[0, "stdout"]) <= WINDOW + 2**17
    agent.send(Taken(len(agent.outputs[0, "stdout"])))
    agent.start(1)
    agent.until(lambda: (1, "stdout") in agent.outputs)
    agent.kill(1)
    agent.until(lambda: 1 in agent.exits)


def test_nonsense_from_the_launcher_ends_the_agent(cold, capfd):
    agent = cold("import time; print('up', flush=True); time.sleep(60)")
    agent.start()
    agent.line()
    agent._socket.sendall(b"nonsense\n")
    assert agent.process.wait(60) == 0
    until(lambda: gone(agent.pids[0]))
    assert "the launcher has sent no message: b'nonsense'" in capfd.readouterr().err


def test_a_host_without_the_folder_has_workers_start_where_the_agent_is(agents, tmp_path):
    path = script(tmp_path, "import os; print(os.getcwd())")
    missing = str(tmp_path / "missing")
    agent = agents([sys.executable, path], missing, forks=False, inherits=True)
    code, out, err = agent.run()
    assert (code, out) == (0, f"{os.getcwd()}\n")
    assert err == f"edt-launch: {missing} is not on this host; this worker starts in {os.getcwd()}\n"


def test_an_agent_sweeps_what_another_one_has_left(agents, tmp_path):
    path = script(tmp_path, "import time; print('up', flush=True); time.sleep(60)")
    variables = {"HOROVOD_HOSTNAME": "here"}
    first = agents([sys.executable, path], tmp_path, forks=False, variables=variables)
    first.start()
    first.line()
    variables["EDT_JOB"] = first.job
    first.process.suspend() if hasattr(first.process, "suspend") else first.process.send_signal(
        signal.SIGSTOP
    )
    agents([sys.executable, path], tmp_path, forks=False, variables=variables, sweeps=True)
    assert gone(first.pids[0])  # it has said hello only then
    assert first.process.wait(60) == -signal.SIGKILL


def test_an_agent_is_not_for_users():
    ended = subprocess.run(COMMAND, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "edt-launch starts this" in ended.stderr


@linux
@pytest.mark.full
def test_the_server_ends_with_the_agent(tmp_path):
    agent = RunningAgent([sys.executable, script(tmp_path, "pass")], tmp_path)
    agent.until(lambda: agent.warm)
    agent.close()
    until(lambda: gone(agent.warm[0].pid))
