from edt_launch.service.accounts import passwords
from edt_launch.service.accounts.passwords import Verifier


def test_only_the_right_password_belongs_to_a_hash() -> None:
    verifier, stored = Verifier(), passwords.hash_of("correct horse")
    assert verifier.verify("ann", "correct horse", stored, 0.0)
    for password, hashed in (("wrong", stored), ("correct horse", None), ("x", "no hash"), ("", stored)):
        assert not verifier.verify("ann", password, hashed, 0.0)
        assert not verifier.remembers("ann", password, hashed, 0.0)
