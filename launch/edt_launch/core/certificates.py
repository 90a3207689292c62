"""Certificates that a process makes for itself, for peers that are told their fingerprint."""

import hashlib
import os
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

LASTS = timedelta(days=3650)
"""Longer than any job; nobody looks at the end, as the fingerprint says all."""


def server_context() -> tuple[ssl.SSLContext, str]:
    """TLS 1.3 as a server with a certificate of its own, and the certificate's SHA-256 in hexadecimal digits.

    The key is made anew each time, and stays in this process.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "edt-launch")])
    now = datetime.now(UTC)
    certificate = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(days=1),
        not_valid_after=now + LASTS,
    ).sign(key, hashes.SHA256())
    pem = certificate.public_bytes(Encoding.PEM) + key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with tempfile.TemporaryDirectory() as folder:  # the ssl module reads files alone
        path = Path(folder, "pem")
        path.touch(0o600)
        path.write_bytes(pem)
        context.load_cert_chain(path)
        os.unlink(path)
    return context, hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
