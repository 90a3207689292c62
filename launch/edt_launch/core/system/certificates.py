"""Certificates that a process signs itself: the service's, and those of peers that are told a fingerprint."""

import hashlib
import ipaddress
import os
import ssl
import tempfile
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

from edt_launch.core.files.atomic import write_atomically

CERTIFICATE_LIFETIME = timedelta(days=730)
"""For how long a certificate is good."""

EARLY = timedelta(days=30)
"""How long before its end it is replaced, at a start."""

LASTS_FOR_JOB = timedelta(days=3650)
"""Longer than any job; nobody looks at the end, as the fingerprint says all."""


def server_context() -> tuple[ssl.SSLContext, str]:
    """TLS 1.3 as a server with a certificate of its own, and the certificate's SHA-256 in hexadecimal digits.

    The key is made anew each time, and stays in this process.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed(key, ["edt-launch"], datetime.now(UTC), LASTS_FOR_JOB)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with tempfile.TemporaryDirectory() as folder:  # the ssl module reads files alone
        path = Path(folder, "pem")
        write_atomically(path, _pem(certificate) + _secret(key), mode=0o600)
        context.load_cert_chain(path)
    return context, hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()


def ensure_certificate(folder: Path, names: Sequence[str], now: float) -> tuple[Path, Path]:
    """The paths of a certificate and its key, made anew unless the folder has some that are good for longer.

    All of `names`, host names and addresses, must be in the certificate; `now` is unix time.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    if not _is_good(certificate, key, names, datetime.fromtimestamp(now, UTC)):
        private = ec.generate_private_key(ec.SECP256R1())
        signed = _signed(private, names, datetime.fromtimestamp(now, UTC), CERTIFICATE_LIFETIME)
        write_atomically(key, _secret(private), mode=0o600)
        write_atomically(certificate, _pem(signed))
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


def _signed(
    key: ec.EllipticCurvePrivateKey, names: Sequence[str], now: datetime, lasts: timedelta
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    builder = x509.CertificateBuilder(
        issuer_name=subject,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(hours=1),  # clients' clocks may be slow
        not_valid_after=now + lasts,
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


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _secret(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
