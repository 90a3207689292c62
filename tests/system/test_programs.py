"""What people give edt-launch to run, besides a well-made elastic script."""

from pathlib import Path

from harness import ElasticJob

UNPORTED = Path(__file__).parents[2] / "examples" / "horovod_port_before.py"


def script(job: ElasticJob, text: str) -> Path:
    path = job.folder / "a script.py"
    path.write_text(text)
    return path


def test_a_script_gets_its_own_options(job: ElasticJob) -> None:
    own = ["--log", "x", "--n", "3", "--min", "1", "--network", "-H", "--", "it's"]
    job.start(
        script(job, "import sys; print(sys.argv[1:])"), *own, options=("-H", "localhost:1", "--no-warm-start")
    )
    assert job.end() == 0, job.stderr
    assert job.stdout == f"[0] {own}\n"


def test_a_program_that_is_not_elastic_runs_to_its_end_everywhere_and_may_print_any_bytes(
    job: ElasticJob,
) -> None:
    text = (
        "import os, time; n = int(os.environ['EDT_WORKER']); time.sleep(n); os.write(1, b'bye \\xff%d' % n)"
    )
    job.start(script(job, text), options=("-H", "localhost:2", "--no-warm-start"))
    assert job.end() == 0
    assert sorted(job.stdout.splitlines()) == ["[0] bye \\xff0", "[1] bye \\xff1"]
    assert "without calling an elastic function" in job.events("finished")[0]["reason"]


def test_a_horovod_script_that_was_not_ported_is_told_how(job: ElasticJob) -> None:
    job.start(UNPORTED, options=("-H", "localhost:1"))
    assert job.end() == 1
    assert "`@edt_hvd.elastic` in place of `@hvd.elastic.run`" in job.stderr
    assert "`edt-launch --horovodrun`" in job.stderr
    assert "ValueError" not in job.stderr, "Horovod's own words about the world that it does not find"
