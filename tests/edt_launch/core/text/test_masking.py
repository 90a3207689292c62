from edt_launch.core.text.masking import masked, without_secrets


def test_values_of_what_is_called_a_secret_and_passwords_in_addresses_are_hidden() -> None:
    assert masked("EPOCHS", "3") == "3"
    assert masked("WANDB_API_KEY", "abc") == "…"
    for address, shown in (
        ("postgresql://ann:sec@ret@host/name", "postgresql://ann:…@host/name"),
        (
            "postgresql://host/name?user=ann&password=secret&x=1",
            "postgresql://host/name?user=ann&password=…&x=1",
        ),
        ("https://ghp_secret@host/name.git", "https://…@host/name.git"),
        ("https://host/blob?sv=1&sig=secret", "https://host/blob?sv=1&sig=…"),
        ("ssh://git@host/name?size=2", "ssh://git@host/name?size=2"),
    ):
        assert masked("STORE", address) == shown


def test_a_report_of_a_failure_has_no_secrets() -> None:
    text = "b'Bearer edt_virN8-s5YnkUbz3S-CrS' in /home/ann: s3cret-key, http://me:pw@h"
    environment = {"API_KEY": "s3cret-key\n", "PWD": "/home/ann", "KEY": "h"}
    assert without_secrets(text, environment) == "b'Bearer …' in /home/ann: …, http://me:…@h"
