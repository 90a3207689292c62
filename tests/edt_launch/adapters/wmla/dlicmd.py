"""Stands for WMLA's command line client, as far as its options, its requests and what it prints are known."""

import argparse
import io
import json
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any

import requests

CONNECTION = ("rest-host", "rest-port", "username", "password", "jwt-token")
"""Options that are never sent."""

OTHER_NAMES = {"master-host": "rest-host", "dli-rest-port": "rest-port"}

READS = {
    "dl-frameworks": "execs/frameworks",
    "exec-get-all": "execs/",
    "hpo-get-all": "hypersearch",
    "hpo-get": "hypersearch/{}",
    "hpo-algorithm-get-all": "hypersearch/algorithm",
    "hpo-algorithm-get": "hypersearch/algorithm/{}",
    "rp-get": "resplans/resplan/{}",
    "app-get": "scheduler/engine/applications/{}",
    "k8s-obj-get-all": "scheduler/kubernetesobjects?type={}",
    "k8s-obj-get": "scheduler/kubernetesobjects?type={}&name={}",
    "status": "status",
}
"""Commands that show what there is at a path."""

CHANGES = {
    "exec-stop": ("POST", "execs/{}/stop", "Stop exec"),
    "exec-delete": ("DELETE", "execs/{}", "Delete exec"),
    "exec-delete-all": ("DELETE", "execs", "Delete execs"),
    "exec-deploy": ("POST", "execs/{}/deploy", "Deploy exec"),
    "rp-delete": ("DELETE", "resplans/resplan/{}", "Delete rp"),
    "app-stop": ("PUT", "scheduler/applications/{}/stop", "Stop application"),
    "hpo-stop": ("PUT", "hypersearch/{}", "Stop hpo"),
    "hpo-force": ("PUT", "hypersearch/{}/force", "Stop hpo"),
    "hpo-restart": ("PUT", "hypersearch/{}/restart", "Restart hpo"),
    "hpo-delete": ("DELETE", "hypersearch/{}", "Delete hpo"),
    "hpo-delete-all": ("DELETE", "hypersearch", "Delete hpos"),
    "hpo-algorithm-delete": ("DELETE", "hypersearch/algorithm/{}", "Delete algorithm"),
}
"""Commands that are answered by nothing but a status."""

PROCESS_LOGS = {"launcherlogs": "launcherlog", "outlogs": "stdout", "errlogs": "stderr"}
"""Commands that show what each process of a job prints, and the names of these logs."""

TRAINING_LOGS = {"trainlogs": "outerrlog", "trainoutlogs": "outlog", "trainerrlogs": "errlog"}

ACTIVE = (
    *("NEW", "SUBMITTED", "PENDING_JOB_SCHEDULER", "PENDING_CRD_SCHEDULER", "LAUNCHING", "RUNNING"),
    *("RECOVERING", "UNKNOWN"),
)
ENDED = ("FINISHED", "KILLED", "ERROR")
"""The states that it asks for; what has another one, and be it in small letters, it does not show."""

APPLICATIONS = "scheduler/engine/applications"

MODEL_DIR = ".modelDir.tar"

JSON, TEXT = "application/json", "text/plain"


@dataclass
class Dlicmd:
    """The client of one user.

    Attributes:
        home: where it keeps its token.
    """

    home: Path

    def __call__(self, line: str, *, query: str = "") -> str:
        """Carry a command out.

        Args:
            line: the command's words, as they are sent but for the options of the connection.
            query: of `--query-args`.

        Returns:
            What it prints.
        """
        connection, self.line = self._connection(line)
        self.query = query
        self.printed: list[str] = []
        self._connect(connection)
        command, *words = self.line.split()
        command = command.removeprefix("--")
        names = list(takewhile(lambda word: not word.startswith("--"), words))
        if command in READS:
            self.printed.append(self._ask("GET", READS[command].format(*names), query=query).text)
        elif command in CHANGES:
            self._change(command, names or [""])
        else:
            self._special(command)(*names)
        return "\n".join(self.printed)

    def _special(self, command: str) -> Callable[..., None]:
        family, _, what = command.partition("-")
        if family in ("exec", "app") and what in PROCESS_LOGS:
            return lambda name: self._process_logs(family, name, PROCESS_LOGS[what])
        if what in TRAINING_LOGS:
            return lambda name: self._training_log(name, TRAINING_LOGS[what])
        return {
            "logon": self._log_on,
            "logoff": self._log_off,
            "exec-start": self._start,
            "exec-get": self._show_exec,
            "exec-trainresult": self._result,
            "rp-get-all": self._show_tree,
            "pj-get-all": lambda: self._print(self._objects("paralleljob")),
            "app-get-all": lambda: self._show_applications(ACTIVE),
            "app-history-get-all": lambda: self._show_applications(ENDED),
            "app-stop-all": self._stop_all,
            "app-wait": self._wait,
            "app-analyze": self._analyze,
            "hpo-start": self._search,
        }[command]

    def _print(self, content: Any) -> None:
        self.printed.append(json.dumps(content))

    def _change(self, command: str, names: Sequence[str]) -> None:
        method, path, said = CHANGES[command]
        for name in names:
            more = {"json": {"kernel": name}} if command == "exec-deploy" else {}
            answer = self._ask(method, path.format(name), **more)
            succeeded = "succeed" if answer.ok else "failed"
            self.printed.append(f"{said} {name} {succeeded}. HTTP:{answer.status_code} {answer.text.strip()}")

    # Where the service is, and who asks.

    def _connection(self, line: str) -> tuple[argparse.Namespace, str]:
        """The options of the connection, and the line without them, its gaps as they are."""
        found = dict.fromkeys(CONNECTION, "")
        kept: list[str] = []
        words = iter(line.split(" "))
        for word in words:
            option, is_joined, value = word.partition("=")
            name = OTHER_NAMES.get(option.removeprefix("--"), option.removeprefix("--"))
            if option.startswith("--") and name in CONNECTION:
                found[name] = value if is_joined else next(words)
            else:
                kept.append(word)
        given = {name.replace("-", "_"): value for name, value in found.items()}
        return argparse.Namespace(**given), " ".join(kept)

    def _connect(self, given: argparse.Namespace) -> None:
        port = "" if given.rest_port in ("", "-1") else f":{given.rest_port}"
        token = self.home / ".dlicmd"
        if given.jwt_token:
            token.write_text(given.jwt_token)
        self.basic = (given.username, given.password) if given.username else None
        self.token = "" if self.basic or not token.exists() else token.read_text()
        for scheme in ("https", "http"):
            self.host = f"{scheme}://{given.rest_host}{port}"
            try:
                answer = self._ask("GET", "conf")
            except requests.exceptions.SSLError:
                continue
            self.conf: dict[str, str] = answer.json() if answer.ok else {}
            return

    def _ask(
        self, method: str, path: str, query: str = "", accept: str = JSON, **more: Any
    ) -> requests.Response:
        url = path if path.startswith("http") else f"{self.host}/platform/rest/deeplearning/v1/{path}"
        if query:
            url += f"{'&' if '?' in url else '?'}{query}"
        headers = {"Accept": accept} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        return requests.request(
            method, url, auth=self.basic, headers=headers, verify=False, timeout=60, **more
        )

    def _log_on(self) -> None:
        answer = self._ask("GET", f"{self.host}/auth/v1/logon")
        if not answer.ok:
            self.printed.append(f"Logon failed. HTTP:{answer.status_code} {answer.text}")
            return
        (self.home / ".dlicmd").write_text(answer.json()["accessToken"])
        self.printed.append("Logon succeed")

    def _log_off(self) -> None:
        answer = self._ask("POST", f"{self.host}/auth/v1/logoff")
        self.printed.append(f"Logoff. HTTP:{answer.status_code}")

    # Submissions.

    def _start(self, _framework: str) -> None:
        args, file, group = self._submission()
        params = {"sigName": group} if group else {}
        answer = self._ask("POST", f"execs/?args={args}", self.query, params=params, files=[file])
        if not answer.ok:
            self.printed.append(answer.text)
            return
        told = answer.json()
        self._print({"execId": told["id"], "appId": told["appId"]})

    def _search(self, definition: str) -> None:
        """Start the search that a file defines; what its trials run is in there, too."""
        _, file, _ = self._submission()
        content = json.dumps(json.loads(Path(definition).read_text()))
        answer = self._ask("POST", "hypersearch", data={"data": content}, files=[file])
        self.printed.append(f"Start hypersearch with id: {answer.text}")

    def _submission(self) -> tuple[str, tuple[str, tuple[str, bytes]], str]:
        """The argument string, the form's file, and the instance group that 1.2.x wants.

        A script without a folder is sent as it is, and named with its path.
        """
        words = self.line.split()
        folder, main = _value(words, "--model-dir").rstrip("/"), _value(words, "--model-main")
        name = f"tmpx1{MODEL_DIR}" if folder else PurePosixPath(main).name
        content = _packed(Path(folder)) if folder else Path(main).read_bytes()
        self.printed.append("Copying files and directories ...")
        self.printed.append(f"Content size: {len(content) / 1024:.1f}K")
        args = self.line.replace(folder, PurePosixPath(folder).name) if folder else self.line
        return args, ("file", (name, content)), _value(words, "--ig")

    # Applications, and whose they are.

    def _applications(self, states: Sequence[str], sort: str) -> list[dict[str, Any]]:
        """Those in these states; the service must tell them as they are written here."""
        asked = f"{APPLICATIONS}?start=0&length=10000&sort={sort}&state={','.join(states)}"
        found: list[dict[str, Any]] = self._ask("GET", asked).json()
        return [one for one in found if one["state"] in states]

    def _objects(self, kind: str) -> Any:
        return self._ask("GET", f"scheduler/kubernetesobjects?type={kind}").json()["items"]

    def _show_applications(self, states: Sequence[str]) -> None:
        found = self._applications(states, "-submit_time")
        self._objects("pod")
        self._print(found[::-1])

    def _show_exec(self, name: str) -> None:
        answer = self._ask("GET", f"execs/{name}")
        if answer.ok and answer.json()["state"] not in ENDED:
            self._ask("GET", f"scheduler/kubernetesobjects?type=paralleljob&name={answer.json()['appId']}")
        self.printed.append(answer.text)

    def _stop_all(self) -> None:
        self._change("app-stop", [one["id"] for one in self._applications(ACTIVE, "submit_time")])

    def _wait(self, name: str) -> None:
        """Ask until the application has ended."""
        state = ""
        while state not in ENDED:
            (application,) = self._ask("GET", f"{APPLICATIONS}/{name}").json()
            state = application["state"]
            self.printed.append(f"{name} {state}")

    def _analyze(self) -> None:
        """How many applications there are of each type and tag, and in which states."""
        found = self._ask("GET", f"{APPLICATIONS}?start=0&length=10000&sort=-submit_time").json()
        counts = Counter(f"{one['tag']} {one['type']} {one['state']}" for one in found)
        self._print(counts)

    def _show_tree(self) -> None:
        """The paths of the tree, and the active applications at each; at `Unknown` what is at none."""
        plan = self._ask("GET", "resplans/resplantree").json()
        running = self._applications(ACTIVE, "submit_time")
        self._objects("pod")
        places: dict[str, list[str]] = {}

        def walk(node: dict[str, Any], above: PurePosixPath) -> None:
            path = above / node["id"]
            users = {one["submit_user"] for one in running if one["consumer"] == str(path)}
            for place in (path, *(path / user for user in users)):
                places[str(place)] = [one["id"] for one in running if _tag(one) == str(place)]
            for child in node["childTreeDto"]:
                walk(child, path)

        walk(plan, PurePosixPath("/"))
        at_places = {name for names in places.values() for name in names}
        unknown = [one["id"] for one in running if one["id"] not in at_places]
        self._print(places | ({"Unknown": unknown} if unknown else {}))

    # What jobs leave.

    def _process_logs(self, family: str, name: str, stream: str) -> None:
        if family == "exec":
            name = self._ask("GET", f"execs/{name}").json()["appId"]
        place = f"scheduler/applications/{name}"
        (application,) = self._ask("GET", f"scheduler/applications?applicationid={name}").json()
        paths = ["driver"] if application["task0"] else []
        paths += [f"executor/{number}" for number, _ in enumerate(application["task12n"], 1)]
        for path in paths:
            answer = self._ask("GET", f"{place}/{path}/logs/{stream}", accept=TEXT)
            self.printed.append(f"{path} {answer.status_code}\n{answer.text}")

    def _training_log(self, name: str, kind: str) -> None:
        answer = self._ask("GET", f"execs/{name}/log?logType={kind}&args={self.line}", accept=TEXT)
        self.printed.append(answer.text)

    def _result(self, name: str) -> None:
        answer = self._ask("GET", f"execs/{name}/result?args={self.line}", accept=TEXT, stream=True)
        pieces = answer.headers["Content-Disposition"].split(";")
        (file,) = (piece.split("=")[1] for piece in pieces if piece.startswith("filename="))
        with (self.home / file).open("wb") as saved:
            for block in answer.iter_content(128):
                saved.write(block)
        self.printed.append(f"Train result is saved to {file}")


def _packed(folder: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return packed.getvalue()


def _tag(application: dict[str, Any]) -> str:
    """Where an application is in the tree: at its tag, else at its submitter below its consumer."""
    return application["tag"] or str(PurePosixPath(application["consumer"]) / application["submit_user"])


def _value(words: Sequence[str], option: str) -> str:
    """What an option is given, either way; empty without it."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}=")
    return ""
