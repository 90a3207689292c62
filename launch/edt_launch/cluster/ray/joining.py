"""Connecting this process to a Ray cluster, or saying why that does not work."""

import logging
import re
import socket

NAMESPACE = "edt"

CONNECT_TIMEOUT = 5.0
"""Seconds that the cluster's head has to answer at all."""

MISMATCH = re.compile(
    r"cluster was started with:\s*Ray: (\S+)\s*Python: (\S+).*?started with:\s*Ray: (\S+)\s*Python: (\S+)",
    re.DOTALL,
)


def join(address: str) -> str | None:
    """Connect to the cluster whose head has this address, or is this machine ("auto"); why not, else None."""
    try:
        import ray
    except ImportError:
        return "--ray needs Ray: pip install 'edt-hvd[ray]'"
    try:
        ray.init(
            address=_checked(address),
            namespace=NAMESPACE,
            log_to_driver=False,
            configure_logging=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:  # noqa: BLE001 - of Ray's many kinds; all of them are told
        return explain(address, error)
    return None


def explain(address: str, error: Exception) -> str:
    """What to do about a cluster that cannot be reached, in a sentence."""
    text = str(error)
    if found := MISMATCH.search(text):
        theirs, their_python, ours, our_python = found.groups()
        return (
            f"--ray {address}: the cluster has Ray {theirs} with Python {their_python}, this environment Ray "
            f"{ours} with Python {our_python}: use the same on all nodes"
        )
    if ("token" in text.lower() and "auth" in text.lower()) or _lacks_token(error):
        return (
            f"--ray {address}: the cluster wants a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or "
            f"RAY_AUTH_TOKEN_PATH to the cluster's token"
        )
    if "://" in address:
        return (
            f"--ray {address}: name the cluster's head itself, as in head:6379, on one of the cluster's nodes"
        )
    if isinstance(error, ConnectionError) and address == "auto":
        return (
            "--ray auto: no Ray cluster runs on this machine: start one with 'ray start --head', or with "
            "'edt up --ray 3' to try it"
        )
    if isinstance(error, OSError):
        return (
            f"--ray {address}: nothing answers there ({error}): is the cluster up, and this one of its nodes?"
        )
    first = next(iter(text.splitlines()), "")
    return f"--ray {address}: {type(error).__name__}: {first}: run this on a node of the cluster that is up"


def _lacks_token(error: BaseException | None) -> bool:
    """Whether the cluster refused a token, which Ray tells in the cause of a failure to connect."""
    while error is not None:
        if "InvalidAuthToken" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _checked(address: str) -> str:
    """The address of a cluster's head, if something answers there: Ray would try for minutes.

    Raises:
        OSError: nothing does.
    """
    from ray._private.services import canonicalize_bootstrap_address

    if "://" in address:
        raise OSError("an address of Ray's client")
    found: str | None = canonicalize_bootstrap_address(address)
    if found is None:
        raise ConnectionError("no address")
    host, _, port = found.rpartition(":")
    if not port.isdecimal():
        raise OSError("expected HOST:PORT of the cluster's head, or auto")
    with socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT):
        return found
