"""A certificate that the service has signed itself, for clients that do not look who has signed it."""

import ipaddress
import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from edt_launch.core.atomic import write_atomically
from edt_launch.service.app.first_start import write_secret

LASTS = timedelta(days=730)
"""For how long a certificate is good."""

EARLY = timedelta(days=30)
"""How long before its end it is replaced, at a start."""


def names_of_this_machine(host: str) -> tuple[str, ...]:
    """What this machine is called by those who talk to it; `host` is the address that is listened on."""
    own = (host, socket.gethostname(), socket.getfqdn(), "localhost", "127.0.0.1", "::1")
    return tuple(name for name in dict.fromkeys(own) if name not in ("0.0.0.0", "::"))


def ensure_certificate(folder: Path, names: Sequence[str], now: float) -> tuple[Path, Path]:
    """The paths of a certificate and its key, made anew unless the folder has some that are good for longer.

    All of `names`, host names and addresses, must be in the certificate; `now` is unix time.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    if not _is_good(certificate, key, names, datetime.fromtimestamp(now, UTC)):
        private = ec.generate_private_key(ec.SECP256R1())
        signed = _signed(private, names, datetime.fromtimestamp(now, UTC))
        secret = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_secret(key, secret.decode())
        write_atomically(certificate, signed.public_bytes(Encoding.PEM).decode())
    os.chmod(key, 0o600)
    return certificate, key


def _is_good(certificate: Path, key: Path, names: Sequence[str], now: datetime) -> bool:
    try:
        present = x509.load_pem_x509_certificate(certificate.read_bytes())
        private = load_pem_private_key(key.read_bytes(), None)
        names_in_it = present.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (FileNotFoundError, ValueError, TypeError, x509.ExtensionNotFound):
        return False
    is_in_time = present.not_valid_before_utc <= now < present.not_valid_after_utc - EARLY
    is_pair = present.public_key() == private.public_key()
    return is_in_time and is_pair and set(names_in_it) >= set(map(_general_name, names))


def _signed(key: ec.EllipticCurvePrivateKey, names: Sequence[str], now: datetime) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    builder = x509.CertificateBuilder(
        issuer_name=subject,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(hours=1),  # clients' clocks may be slow
        not_valid_after=now + LASTS,
    )
    # An authority of nothing but itself: then clients can be told to trust it.
    extensions = (
        (x509.SubjectAlternativeName(map(_general_name, names)), False),
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
    )
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, critical=is_critical)
    return builder.sign(key, hashes.SHA256())


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
