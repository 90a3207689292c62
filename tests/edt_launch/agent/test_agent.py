"""Agents over real processes: workers like `python script.py`, only sooner, and nothing of them is left."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
from itertools import count

import numpy as np
import psutil
import pytest

from edt_launch.agent.protocol import WINDOW, WindowUpdate
from running_agent import RunningAgent, script, until
from started import gone
from tiers import full

linux = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")

# Starts warm servers that import what the program does, and nothing else ahead.
LIGHT = """
from edt_launch.agent import main
from edt_launch.agent.warm import server
light = "import edt_hvd.warm.main as m; m.ALWAYS = (); main(started"
server._SERVER = server._SERVER.replace("main(started", light)
{more}
main.main()
"""

# Runs the text that a worker's variable TEXT has, as if it were this script's.
PROGRAM = """
    import os, drawing, heavy
    try:
        import broken
    except SystemExit:
        pass
    exec(compile(os.environ["TEXT"], "text", "exec"), globals())
"""
INSTALLED = {
    "heavy": "import os; pid = os.getpid()",
    "broken": "raise SystemExit(9)",
    "drawing": """
        import sys
        if sys.argv[0] == "-c":  # in the warm server
            import random, numpy, torch
            random.gauss(), numpy.random.randn(), torch.randn(3)
    """,
}


def install(folder, modules):
    """The variables of a job for which these modules are installed."""
    packages = folder / "site-packages"
    packages.mkdir()
    for name, text in modules.items():
        script(packages, text, f"{name}.py")
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")]))}


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
def warm(agents, tmp_path_factory):
    """An agent whose warm server runs any text, in a folder with an awkward name."""
    folder = tmp_path_factory.mktemp("it's a host")
    variables = {"OWN": "a 'b' \udcff\n", "PYTHONUNBUFFERED": "1"} | install(folder, INSTALLED)
    before = os.umask(0o027)
    try:
        command = [sys.executable, script(folder, PROGRAM, "any.py"), "a b", "-m"]
        agent = agents(command, folder, variables=variables)
        agent.command, agent.folder, agent.numbers = command, folder, count()
        agent.until(lambda: agent.warm)
        yield agent
    finally:
        os.umask(before)


@pytest.fixture
def forked(warm):
    """Starts a warm worker that runs a text; returns its number."""

    def start(text):
        worker = next(warm.numbers)
        warm.start(worker, TEXT=textwrap.dedent(text))
        return worker

    return start


@pytest.fixture
def cold(agents, tmp_path):
    """Makes an agent without a warm server for a script of this text."""
    return lambda text, **more: agents(
        [sys.executable, script(tmp_path, text)], tmp_path, forks=False, **more
    )


@pytest.fixture
def light(agents, tmp_path):
    """Makes an agent with a light warm server of its own for a script of this text."""
    return lambda text, more="", **given: agents(
        [sys.executable, script(tmp_path, text)], tmp_path, code=LIGHT.format(more=more), **given
    )


TEXTS = [
    "import sys; sys.exit(3)",
    "import sys; sys.exit('a text')",
    "import os; os.kill(os.getpid(), 9)",
    "import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(60)",
    "raise ValueError('it is broken')",
    "import atexit; atexit.register(print, 'late'); print('early')",
    "import threading as t; t.Thread(target=lambda: print(t.main_thread().join())).start(); print('main')",
    "print(open('/dev/stdin').read())",
    "import sys; print('no newline', end=''); print('error', file=sys.stderr)",
    "import signal; print([signal.getsignal(n) for n in signal.valid_signals()])",
    "import sys; print(sys.argv, sys.orig_argv[1:], sys.path, sys.flags, sys.executable)",
    "import os; print(os.getcwd(), sorted(os.environ.items()))",
    "import os; print(os.umask(0), os.get_terminal_size.__name__, os.getpriority(0, 0))",
    "print({k: v for k, v in globals().items() if k not in ('__builtins__', '__loader__')})",
    "import __main__, inspect\nclass Own: pass\nprint(inspect.getsource(__main__.Own), Own.__module__)",
    "import sys; print([(s.encoding, s.errors, s.line_buffering) for s in (sys.stdout, sys.stderr)])",
]


@linux
def test_forked_workers_end_and_look_like_programs_that_were_just_started(warm, forked):
    for text in TEXTS:
        worker = forked(text)
        direct = subprocess.run(
            warm.command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=warm.folder,
            env={**warm.environment, "EDT_WORKER": str(worker), "TEXT": text},
            preexec_fn=lambda: signal.signal(signal.SIGUSR2, signal.SIG_IGN),  # as workers of an agent
        )
        assert warm.ended(worker) == (direct.returncode, direct.stdout, direct.stderr), text


@linux
def test_imports_that_draw_change_no_random_numbers_of_workers(warm, forked):
    prints = "print(random.gauss(), numpy.random.randn(), torch.randn(3).tolist())"
    seeds = "random.seed(1); numpy.random.seed(1); torch.manual_seed(1)"
    text = f"import random, numpy, torch\n{prints}\n{seeds}\n{prints}"
    first, second = (warm.ended(forked(text))[1].splitlines() for _ in range(2))
    assert not set(first[0].split()) & set(second[0].split())
    assert first[1] == second[1]
    assert first[1].split()[:2] == [str(random.Random(1).gauss()), str(np.random.RandomState(1).randn())]


@linux
def test_a_worker_is_known_by_its_program_and_its_job(warm, forked):
    worker = forked("import time; print('up', flush=True); time.sleep(60)")
    warm.line(worker)
    process = psutil.Process(warm.pids[worker])
    assert " ".join(process.cmdline()).rstrip() == " ".join(warm.command)
    assert process.environ()["EDT_JOB"] == warm.job
    assert process.pid == os.getsid(process.pid)
    assert process.ppid() == warm.warm[-1].pid
    assert psutil.Process(process.ppid()).ppid() == warm.process.pid
    warm.kill(worker)
    assert warm.ended(worker)[0] == -signal.SIGKILL
    assert gone(process.pid)


@linux
def test_processes_of_the_programs_own(warm, forked):
    text = """
        import multiprocessing

        class Own:
            def __init__(self, value):
                self.value = value

        def double(own):
            return Own(2 * own.value)

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(double, [Own(21)]).value)
    """
    assert warm.ended(forked(text)) == (0, "42\n", "")


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
def test_a_killed_worker_leaves_nothing(warm, forked, cold):
    alone = cold(FAMILY)
    alone.start()
    for agent, worker in ((warm, forked(FAMILY)), (alone, 0)):
        pids = [int(word) for word in agent.line(worker).split()]
        agent.kill(worker)
        assert agent.ended(worker)[0] == -signal.SIGKILL
        until(lambda pids=pids: all(map(gone, pids)))


@linux
@pytest.mark.parametrize(
    "how, forks",
    [
        *(full("closed", True), full("hung up", True), ("killed", True)),
        *(("closed", False), ("hung up", False), ("killed", False), ("silent", True)),
    ],
)
def test_workers_end_with_their_launcher_and_with_their_agent(cold, light, how, forks):
    lease = 3.0 if how == "silent" else None
    agent = light(FAMILY, lease=lease) if forks else cold(FAMILY, lease=lease)
    agent.start()
    *pids, far = [int(word) for word in agent.line().split()]
    servers = [told.pid for told in agent.warm]
    if how == "killed":
        agent.process.kill()
        psutil.Process(far).kill()  # the launcher finds it by its job
    elif how == "silent":
        agent.renews = False
    else:
        agent.hang_up() if how == "hung up" else agent.close()
    until(lambda: all(map(gone, [*pids, far, *servers])))
    assert agent.process.wait(60) == (-signal.SIGKILL if how == "killed" else 0)


WAITS = """
    import os, sys, time
    print('up', flush=True)
    while not os.path.exists({go!r}): time.sleep(0.01)
    sys.exit(5)
"""


@linux
def test_workers_of_a_module_outlive_their_server(agents, tmp_path):
    go = tmp_path / "go"
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    said = "import sys; print(__name__, __spec__.name, sys.argv, sys.path[0])"
    script(package, f"{said}\n{textwrap.dedent(WAITS.format(go=str(go)))}")
    agent = agents([sys.executable, "-m", "package.train", "a"], tmp_path, code=LIGHT.format(more=""))
    agent.start()
    assert agent.line() == f"__main__ package.train {[str(package / 'train.py'), 'a']} {tmp_path}"
    os.kill(agent.warm[0].pid, signal.SIGKILL)
    until(lambda: gone(agent.warm[0].pid))
    go.touch()
    assert agent.ended()[0] == 5


@linux
@pytest.mark.parametrize(
    "module, reason",
    [
        ("import threading as t; t.Thread(target=t.Event().wait, daemon=True).start()", "thread"),
        full("import torch; torch.cuda.is_initialized = lambda: True", "CUDA"),
        full("import os\nif __import__('sys').argv[0] == '-c': os.abort()", None),
    ],
)
def test_nothing_is_forked_from_a_process_that_has_more_than_imports(light, tmp_path, module, reason):
    variables = install(tmp_path, {"unfit": module})
    agent = light("import os, sys, unfit; print(os.getppid()); sys.exit(4)", variables=variables)
    code, out, _ = agent.run()
    assert (code, int(out)) == (4, agent.process.pid)
    assert agent.run(1)[0] == 4
    if reason is None:  # it has crashed
        assert agent.warm == []
    else:
        (told,) = agent.warm
        assert reason in told.refused


@linux
@pytest.mark.full
def test_a_program_that_sets_variables_for_its_imports_gets_them_in_time(light, tmp_path):
    variables = install(tmp_path, {"reader": "import os; read = os.environ.get('READ_AT_IMPORT')"})
    text = "import os\nos.environ['READ_AT_IMPORT'] = '1'\nimport reader\nprint(reader.read)"
    agent = light(text, variables=variables)
    assert agent.run() == (0, "1\n", "")
    assert "train.py, line 2" in agent.warm[0].refused


@linux
def test_an_own_module_with_the_name_of_an_imported_one(light, tmp_path):
    script(tmp_path, "which = 'own'", "colorsys.py")
    variables = install(tmp_path, {"other": "import colorsys"})
    agent = light("import other, colorsys; print(colorsys.which)", variables=variables)
    assert agent.run()[1] == "own\n"


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
    agent.send(WindowUpdate(len(agent.outputs[0, "stdout"])))
    agent.start(1)
    agent.until(lambda: (1, "stdout") in agent.outputs)
    agent.kill(1)
    agent.until(lambda: 1 in agent.exits)


@pytest.mark.parametrize(
    "script, lacks",
    [
        ("train.py", "folder /no/folder: share it, or copy it to that host"),
        ("/no/folder/train.py", "folder /no/folder: share it, or copy it to that host"),
        ("/no/such.py", "/no/such.py: put it on that host, too"),
    ],
)
def test_a_host_without_the_folder_or_the_script(agents, tmp_path, script, lacks):
    command = [sys.executable, script]
    one = agents(
        command, tmp_path, variables={"HOROVOD_HOSTNAME": "node2"}, inherits=True, directory="/no/folder"
    )
    code, _, said = one.run()
    assert code == 127
    assert f"node2 has no {lacks}" in said
