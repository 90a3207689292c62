"""Workers forked from a warm server, over real processes: like `python script.py`, only sooner."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import uuid

import psutil
import pytest

ATTACH = [sys.executable, "-P", "-m", "edt_launch.agent.attach", "--"]


class Host:
    """One host of a job: the launcher's end of its warm server, and attaching processes started by hand."""

    def __init__(self, folder):
        self.folder = folder
        self.launcher = socket.create_server(("127.0.0.1", 0))
        self.launcher.settimeout(60)
        self.environment = os.environ | {
            "EDT_COORDINATOR": f"127.0.0.1:{self.launcher.getsockname()[1]}",
            "EDT_TOKEN": "t0ken",
            "EDT_JOB": uuid.uuid4().hex,
            "EDT_WORKER": "3",
            "EDT_LOGS": str(folder),
            "HOROVOD_HOSTNAME": "here",
        }
        self.servers = []
        self._connections = []

    def script(self, text, name="train.py"):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    @contextlib.contextmanager
    def started(self, *words, **more):
        """A program started through the server; killed at the end, whatever the test finds."""
        settings = {"env": self.environment, "stdin": subprocess.DEVNULL, "text": True, **more}
        command = [*ATTACH, sys.executable, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *words, **more):
        with self.started(*words, **more) as process:
            out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def told(self):
        """What the next server says; None if it ended before."""
        connection, _ = self.launcher.accept()
        self._connections.append(connection)
        connection.settimeout(60)
        with connection.makefile() as lines:
            line = lines.readline()
        if not line:
            return None
        message = json.loads(line)
        self.servers.append(psutil.Process(message["pid"]))
        return message

    def kill_server(self):
        """Kill the latest server."""
        self.servers[-1].kill()
        until(lambda: gone(self.servers[-1].pid))

    def close(self):
        """End as the launcher does; the servers follow."""
        self.launcher.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.told()
        self.launcher.close()
        for connection in self._connections:
            connection.close()
        until(lambda: all(gone(server.pid) for server in self.servers))


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A host with a server that runs already."""
    one = Host(tmp_path_factory.mktemp("it's a host"))
    assert one.run(one.script("print('warm')")) == (0, "warm\n", "")
    message = one.told()
    assert message["refused"] is None
    assert {"torch", "horovod", "edt_hvd"} <= set(message["imports"])
    yield one
    one.close()


@pytest.fixture
def fresh(tmp_path):
    """A host without a server yet."""
    one = Host(tmp_path)
    yield one
    one.close()


def gone(pid):
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def until(condition):
    while not condition():
        time.sleep(0.01)


@pytest.mark.parametrize(
    "text",
    [
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
    ],
)
def test_ends_and_looks_like_a_program_that_was_just_started(host, text):
    script = host.script(text)
    environment = host.environment | {"OWN": "a 'b' \udcff\n"}
    more = {"env": environment, "cwd": host.folder, "umask": 0o027}
    direct = subprocess.run(
        [sys.executable, script, "a b", "-m"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **more,
    )
    assert host.run(script, "a b", "-m", **more) == (direct.returncode, direct.stdout, direct.stderr)


def test_a_script_by_a_link_and_a_relative_path(host):
    script = host.script("import sys; print(__file__, sys.argv[0], sys.path[0])", "real.py")
    (host.folder / "links").mkdir()
    (host.folder / "links" / "link.py").symlink_to(script)
    _, out, _ = host.run("links/link.py", cwd=host.folder)
    assert out == f"{host.folder}/links/link.py links/link.py {host.folder}\n"


def test_a_module(host):
    package = host.folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "train.py").write_text("import sys; print(__name__, __spec__.name, sys.argv, sys.path[0])")
    code, out, _ = host.run("-m", "package.train", "a", cwd=host.folder)
    assert (code, out) == (0, f"__main__ package.train {[str(package / 'train.py'), 'a']} {host.folder}\n")


def test_processes_of_the_programs_own(host):
    script = host.script("""
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
    """)
    assert host.run(script) == (0, "42\n[0, 1, 4, 9]\n", "")


def test_random_numbers_differ(host):
    script = host.script("import random, numpy; print(random.random(), numpy.random.rand())")
    first, second = (host.run(script)[1].split() for _ in range(2))
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_is_known_by_its_program_and_its_job(host):
    script = host.script("import time; print('up', flush=True); time.sleep(60)", "a name.py")
    with host.started(script, "argument") as attach:
        assert attach.stdout.readline() == "up\n"
        (worker,) = host.servers[0].children()
        assert " ".join(worker.cmdline()).rstrip() == f"{sys.executable} {script} argument"
        environment = worker.environ()
        assert environment["EDT_JOB"] == host.environment["EDT_JOB"]
        assert "EDT_WORKER" not in environment
        assert worker.pid == os.getsid(worker.pid)
        attach.terminate()
        assert attach.wait(60) == -signal.SIGTERM
    assert gone(worker.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on(host, number):
    script = host.script(f"""
        import signal, sys, time
        signal.signal({int(number)}, lambda received, _: sys.exit(40 + received))
        print("ready", flush=True)
        time.sleep(60)
    """)
    with host.started(script) as attach:
        assert attach.stdout.readline() == "ready\n"
        attach.send_signal(number)
        assert attach.wait(60) == 40 + number


FAMILY = """
    import os, signal, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = os.fork()
    if child:
        print(os.getpid(), child, flush=True)
    time.sleep(60)
"""


def test_who_kills_the_attaching_process_kills_the_workers_whole_group(host):
    with host.started(host.script(FAMILY)) as attach:
        pids = [int(word) for word in attach.stdout.readline().split()]
        attach.terminate()
        attach.kill()
    until(lambda: all(map(gone, pids)))


def test_a_worker_outlives_its_server(fresh):
    script = fresh.script("import sys; print('up', flush=True); input(); sys.exit(5)")
    with fresh.started(script, stdin=subprocess.PIPE) as attach:
        attach.stdout.readline()
        fresh.told()
        fresh.kill_server()
        attach.stdin.write("go on\n")
        attach.stdin.flush()
        assert attach.wait(60) == 5
    with fresh.started(fresh.script(FAMILY)) as attach:  # from another server
        pids = [int(word) for word in attach.stdout.readline().split()]
        fresh.told()
        fresh.kill_server()
        attach.kill()
    until(lambda: all(map(gone, pids)))


def test_a_worker_that_dies_without_its_server_was_killed(fresh):
    with fresh.started(
        fresh.script("import os; print(os.getpid(), flush=True); input()"), stdin=subprocess.PIPE
    ) as attach:
        pid = int(attach.stdout.readline())
        fresh.told()
        fresh.kill_server()
        os.kill(pid, signal.SIGKILL)
        assert attach.wait(60) == -signal.SIGKILL
        assert "warm server, which knows how, is lost or stopped" in attach.stderr.read()


@contextlib.contextmanager
def stopped(server):
    server.suspend()
    try:
        yield
    finally:
        server.resume()


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_worker_that_ends_while_its_server_is_stopped(host, is_killed):
    script = host.script("import os, sys; print(os.getpid(), flush=True); input(); sys.exit(5)")
    with host.started(script, stdin=subprocess.PIPE) as attach:
        pid = int(attach.stdout.readline())
        with stopped(host.servers[0]):
            if is_killed:
                os.kill(pid, signal.SIGKILL)
            else:
                attach.stdin.write("end\n")
                attach.stdin.flush()
            assert attach.wait(60) == (-signal.SIGKILL if is_killed else 5)


def test_a_stopped_server_is_done_without(host):
    script = host.script("import os, sys; print(os.getpid()); sys.exit(6)")
    attach = "from edt_launch.agent import attach; attach.REQUEST_TIMEOUT = 0.1; attach.main()"
    command = [sys.executable, "-P", "-c", attach, "--", sys.executable, script]
    with stopped(host.servers[0]):
        process = subprocess.Popen(
            command, env=host.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = process.communicate(timeout=60)
    assert (process.returncode, int(out)) == (6, process.pid)
    assert err == "edt-launch: the warm server has not answered for 0.1 s; this worker starts without it\n"
    assert host.run(script)[0] == 6


def test_many_workers_leave_nothing(host):
    (server,) = host.servers
    script = host.script("import os; os._exit(0)")
    before = server.num_fds(), len(os.listdir(f"/proc/{server.pid}/task"))
    for _ in range(25):
        with contextlib.ExitStack() as stack:
            eight = [stack.enter_context(host.started(script)) for _ in range(8)]
            assert [(process.communicate()[1], process.returncode) for process in eight] == [("", 0)] * 8
    assert server.children() == []
    assert (server.num_fds(), len(os.listdir(f"/proc/{server.pid}/task"))) == before


@pytest.fixture
def installed(fresh):
    """Installs a module, for the server and the programs."""
    folder = fresh.folder / "site-packages"
    folder.mkdir()
    fresh.environment["PYTHONPATH"] = os.pathsep.join(
        [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    )

    def install(name, text):
        (folder / f"{name}.py").write_text(textwrap.dedent(text))

    return install


def test_what_the_program_imports_is_there_already(fresh, installed):
    installed("heavy", "import os; pid = os.getpid()")
    installed("broken", "raise SystemExit(9)")
    script = fresh.script(
        "import heavy, os\ntry:\n  import broken\nexcept SystemExit: pass\nprint(heavy.pid)"
    )
    assert fresh.run(script)[1] == f"{fresh.told()['pid']}\n"


@pytest.mark.parametrize(
    "text, reason",
    [
        (
            "import threading, time; threading.Thread(target=time.sleep, args=[60], daemon=True).start()",
            "thread",
        ),
        ("import torch; torch.ones(2000, 2000) @ torch.ones(2000, 2000)", "threads"),
        ("import torch; torch.cuda.is_initialized = lambda: True", "CUDA"),
    ],
)
def test_nothing_is_forked_from_a_process_that_has_more_than_imports(fresh, installed, text, reason):
    if reason == "threads" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core: torch starts no threads")
    installed("unfit", text)
    script = fresh.script("import os, sys, unfit; print(os.getppid()); sys.exit(4)")
    with fresh.started(script) as attach:
        out, err = attach.communicate(timeout=60)
    assert (attach.returncode, int(out), err) == (4, os.getpid(), "")
    assert reason in fresh.told()["refused"]


def test_a_program_that_sets_variables_for_its_imports_gets_them_in_time(fresh, installed):
    installed("reader", "import os; read = os.environ.get('READ_AT_IMPORT')")
    script = fresh.script("import os\nos.environ['READ_AT_IMPORT'] = '1'\nimport reader\nprint(reader.read)")
    assert fresh.run(script) == (0, "1\n", "")
    assert f"{script}, line 2" in fresh.told()["refused"]


def test_an_own_module_with_the_name_of_an_imported_one(fresh):
    fresh.script("which = 'own'", "colorsys.py")
    script = fresh.script("import colorsys; print(colorsys.which)")
    assert fresh.run(script)[1] == "own\n"


def test_an_import_that_ends_the_interpreter(fresh, installed):
    installed("crashing", "import os, sys\nif sys.argv[0] == '-c': os.abort()\nvalue = 3")
    assert fresh.run(fresh.script("import crashing; print(crashing.value)")) == (0, "3\n", "")


@pytest.mark.parametrize("missing", ["EDT_JOB", "script"])
def test_what_cannot_be_forked_runs_all_the_same(fresh, missing):
    fresh.environment.pop(missing, None)
    name = fresh.script("print(1)") if missing != "script" else "no such file.py"
    code, out, err = fresh.run(name)
    assert (code, out) == ((0, "1\n") if missing == "EDT_JOB" else (2, ""))
    assert ("can't open file" in err) == (missing == "script")


def test_a_command_that_is_not_there(fresh):
    command = [*ATTACH, "no-such-command"]
    result = subprocess.run(command, env=fresh.environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (
        127,
        "edt-launch: cannot run no-such-command: No such file or directory\n",
    )


def test_the_server_ends_with_the_launcher(tmp_path):
    host = Host(tmp_path)
    host.run(host.script("pass"))
    host.told()
    host.close()
    assert (tmp_path / "warm.here.log").read_text() == "ended: the launcher has gone\n"
