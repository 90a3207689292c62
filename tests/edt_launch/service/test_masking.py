from edt_launch.service.masking import masked


def test_values_of_what_is_called_a_secret_and_passwords_in_addresses_are_hidden() -> None:
    assert masked("EPOCHS", "3") == "3"
    assert masked("WANDB_API_KEY", "abc") == "…"
    assert masked("STORE", "postgresql://ann:secret@host/name") == "postgresql://ann:…@host/name"
