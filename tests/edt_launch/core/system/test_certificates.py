import ssl
from pathlib import Path

import pytest
from cryptography import x509

from edt_launch.core.system.certificates import CERTIFICATE_LIFETIME, EARLY, ensure_certificate

NOW = 1_800_000_000.0
NAMES = ("node1", "localhost", "127.0.0.1", "::1")


def test_it_names_the_machine_and_only_its_owner_reads_the_key(tmp_path: Path) -> None:
    certificate, key = ensure_certificate(tmp_path / "tls", NAMES, NOW)
    assert key.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "tls").stat().st_mode & 0o777 == 0o700
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["node1", "localhost"]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)


@pytest.mark.parametrize("what", ["too old", "another name", "no certificate", "no key"])
def test_otherwise_it_is_made_anew(tmp_path: Path, what: str) -> None:
    certificate, key = ensure_certificate(tmp_path, NAMES, NOW)
    before = certificate.read_bytes()
    now, names = NOW, NAMES
    match what:
        case "too old":
            now += (CERTIFICATE_LIFETIME - EARLY).total_seconds() + 1
        case "another name":
            names = (*NAMES, "node2")
        case "no certificate":
            certificate.write_text("nonsense")
        case "no key":
            key.unlink()
    ensure_certificate(tmp_path, names, now)
    assert certificate.read_bytes() != before
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
