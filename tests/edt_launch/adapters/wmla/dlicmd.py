"""Stands for WMLA's command line client, as far as its options, its requests and what it prints are known."""

import argparse
import io
import json
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

CONNECTION = ("rest-host", "rest-port", "username", "password", "jwt-token")
"""Options that are never sent."""

OTHER_NAMES = {"master-host": "rest-host", "dli-rest-port": "rest-port"}

READS = {
    "dl-frameworks": "execs/frameworks",
    "exec-get-all": "execs",
    "exec-get": "execs/{}",
    "exec-trainlogs": "execs/{}/log",
    "exec-trainoutlogs": "execs/{}/log?logType=outlog",
    "exec-trainerrlogs": "execs/{}/log?logType=errlog",
    "exec-launcherlogs": "scheduler/applications/{}/driver/logs/launcherlog",
    "rp-get-all": "resplans/resplantree",
    "rp-get": "resplans/resplan/{}",
    "app-get-all": "scheduler/engine/applications",
    "app-get": "scheduler/engine/applications/{}",
    "hpo-get-all": "hypersearch",
    "hpo-get": "hypersearch/{}",
    "hpo-algorithm-get-all": "hypersearch/algorithm",
    "hpo-algorithm-get": "hypersearch/algorithm/{}",
    "k8s-obj-get": "scheduler/kubernetesobjects?type=pod&name={}",
    "k8s-obj-status": "scheduler/kubernetesobjects/status",
    "status": "status",
}
"""Commands that show what there is at a path."""

CHANGES = {
    "exec-stop": ("POST", "execs/{}/stop", "Stop exec"),
    "exec-delete": ("DELETE", "execs/{}", "Delete exec"),
    "exec-delete-all": ("DELETE", "execs", "Delete execs"),
    "exec-deploy": ("POST", "execs/{}/deploy", "Deploy exec"),
    "app-stop": ("PUT", "scheduler/applications/{}/stop", "Stop app"),
    "hpo-stop": ("PUT", "hypersearch/{}", "Stop hpo"),
    "hpo-force": ("PUT", "hypersearch/{}/force", "Stop hpo"),
    "hpo-restart": ("PUT", "hypersearch/{}/restart", "Restart hpo"),
    "hpo-delete": ("DELETE", "hypersearch/{}", "Delete hpo"),
    "hpo-delete-all": ("DELETE", "hypersearch", "Delete hpos"),
}
"""Commands that are answered by nothing but a status."""


@dataclass
class Dlicmd:
    """The client of one user.

    Attributes:
        home: where it keeps its token.
    """

    home: Path

    def __call__(self, line: str, *, query: str = "", data: str = "") -> str:
        """Carry a command out.

        Args:
            line: the command's words, as they are sent but for the options of the connection.
            query: of `--query-args`.
            data: the definition of a search, as JSON.

        Returns:
            What it prints.
        """
        connection, rest = self._connection(line)
        self.printed: list[str] = []
        self._connect(connection)
        command, _, name = rest.strip().removeprefix("--").partition(" ")
        name = name.strip()
        if command in READS:
            self.printed.append(self._ask("GET", READS[command].format(name), query=query).text)
        elif command in CHANGES:
            method, path, said = CHANGES[command]
            answer = self._ask(method, path.format(name))
            succeeded = "succeed" if answer.status_code == 204 else f"failed: {answer.text.strip()}"
            self.printed.append(f"{said} {name} {succeeded}. HTTP:{answer.status_code}")
        else:
            self._special(command)(rest, name, query, data)
        return "\n".join(self.printed)

    def _special(self, command: str) -> Callable[[str, str, str, str], None]:
        return {
            "logon": self._log_on,
            "logoff": self._log_off,
            "exec-outlogs": lambda *given: self._process_logs(given[1], "stdout"),
            "exec-errlogs": lambda *given: self._process_logs(given[1], "stderr"),
            "exec-trainresult": lambda *given: self._result(given[1]),
            "hpo-start": lambda rest, _name, _query, data: self._search(rest, data),
        }.get(command, self._start)

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

    def _ask(self, method: str, path: str, query: str = "", **more: Any) -> requests.Response:
        url = path if path.startswith("http") else f"{self.host}/platform/rest/deeplearning/v1/{path}"
        if query:
            url += f"{'&' if '?' in url else '?'}{query}"
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return requests.request(
            method, url, auth=self.basic, headers=headers, verify=False, timeout=60, **more
        )

    def _log_on(self, *_: str) -> None:
        answer = self._ask("GET", f"{self.host}/auth/v1/logon")
        if not answer.ok:
            self.printed.append(f"Logon failed. HTTP:{answer.status_code} {answer.text}")
            return
        (self.home / ".dlicmd").write_text(answer.json()["accessToken"])
        self.printed.append("Logon succeed")

    def _log_off(self, *_: str) -> None:
        answer = self._ask("POST", f"{self.host}/auth/v1/logoff")
        self.printed.append(f"Logoff. HTTP:{answer.status_code}")

    # Submissions.

    def _start(self, rest: str, _name: str, query: str, _data: str) -> None:
        args, archive, params = self._submission(rest)
        answer = self._ask("POST", "execs", query, params={"args": args, **params}, files={"file": archive})
        if not answer.ok:
            self.printed.append(answer.text)
            return
        told = answer.json()
        self.printed.append(json.dumps({"execId": told["id"], "appId": told["appId"]}))

    def _search(self, rest: str, data: str) -> None:
        args, archive, _ = self._submission(rest)
        definition = json.loads(data)
        definition["modelSpec"] = {"args": args}
        answer = self._ask(
            "POST", "hypersearch", data={"data": json.dumps(definition)}, files={"file": archive}
        )
        self.printed.append(answer.text)

    def _submission(self, rest: str) -> tuple[str, tuple[str, bytes], dict[str, str]]:
        """The argument string, the archive, and what 1.2.x wants besides."""
        folder = Path(_value(rest.split(), "--model-dir"))
        group = _value(rest.split(), "--ig")
        self.printed.append("Copying files and directories ...")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            tar.add(folder, arcname=folder.name)
        self.printed.append(f"Content size: {len(packed.getvalue()) / 1024:.1f}K")
        args = rest.replace(str(folder), folder.name)
        file = (f"{folder.name}.modelDir.tar", packed.getvalue())
        return args, file, {"sigName": group} if group else {}

    # What jobs leave.

    def _process_logs(self, name: str, stream: str) -> None:
        place = f"scheduler/applications/{name}"
        (application,) = self._ask("GET", f"scheduler/applications?applicationid={name}").json()
        for path in ("driver", *(f"executor/{task['task']}" for task in application["task12n"])):
            self.printed.append(self._ask("GET", f"{place}/{path}/logs/{stream}?lastlines=1000").text)

    def _result(self, name: str) -> None:
        answer = self._ask("GET", f"execs/{name}/result", stream=True)
        pieces = answer.headers["Content-Disposition"].split(";")
        (file,) = (piece.split("=")[1] for piece in pieces if piece.startswith("filename="))
        with (self.home / file).open("wb") as saved:
            for block in answer.iter_content(2**16):
                saved.write(block)
        self.printed.append(f"Train result is saved to {file}")


def _value(words: Sequence[str], option: str) -> str:
    """What an option is given, either way; empty without it."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}=")
    return ""
