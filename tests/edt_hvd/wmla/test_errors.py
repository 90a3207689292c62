import subprocess
import sys

SCRIPT = """
from IPython.core.interactiveshell import InteractiveShell
from edt_hvd.wmla.errors import TrainingFailedError
def train():
    raise TrainingFailedError("the training ended with exit code 3")
shell = InteractiveShell.instance()
shell.user_ns["train"] = train
shell.run_cell("train()")
"""


def test_notebooks_show_the_message_alone() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "TrainingFailedError: the training ended with exit code 3"
