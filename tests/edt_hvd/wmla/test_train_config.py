import pytest

from edt_hvd.wmla.train_config import (
    TrainConfig,
    executors_wanted,
    make_train_config,
)


def config(*positional: object, environ: dict[str, str] | None = None, **named: object) -> TrainConfig:
    defaults = {
        "effective_batch_size": None,
        "worker_num": None,
        "num_dataloader_threads": 0,
        "validation_freq": 1,
        "checkpoint_freq": 1,
        "seed": 0,
    }
    return make_train_config(*positional, **{**defaults, **named}, environ=environ or {})  # type: ignore[arg-type]


def test_effective_batch_is_the_mini_batch_times_the_engines() -> None:
    found = config(10, 64, 16)
    assert (found.effective_batch_size, found.batches_per_step, found.max_workers) == (1024, 16, 16)


def test_a_job_that_names_no_engines_may_grow_to_all_of_its_workers() -> None:
    found = config(1, 8, None, usual_engines=4)
    assert (found.effective_batch_size, found.max_workers) == (32, 4)
    assert config(1, 8, 2, usual_engines=4).effective_batch_size == 16
    assert config(1, 8, None, worker_num=3, usual_engines=4).effective_batch_size == 24
    assert config(1, 8, None, effective_batch_size=20, usual_engines=4).effective_batch_size == 20


@pytest.mark.parametrize(
    "positional,named,words",
    [
        ((0, 8, 1), {}, ("epoch_number=0", "at least 1")),
        ((1, 8.0, 1), {}, ("batch_size=8.0", "float")),
        ((1, 8, 1), {"checkpoint_freq": -1}, ("checkpoint_freq=-1", "at least 0")),
        ((1, 8, 2), {"effective_batch_size": 16}, ("engines_number=2", "effective_batch_size=16")),
        ((1, 8, None), {"effective_batch_size": 4}, ("batch_size=8", "effective_batch_size=4", "smaller")),
        ((1, 8, 1), {"environ": {"EDT_WMLA_DETERMINISTIC": "yes"}}, ("DETERMINISTIC='yes'", "0 nor 1")),
    ],
)
def test_nonsense_is_refused(
    positional: tuple[object, ...], named: dict[str, object], words: tuple[str, ...]
) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        config(*positional, **named)  # type: ignore[arg-type]
    assert all(word in str(caught.value) for word in words), caught.value


def test_frequencies_count_epochs_from_one() -> None:
    found = config(10, 8, 1, validation_freq=3, checkpoint_freq=5)
    assert [epoch for epoch in range(10) if found.validates_after(epoch)] == [2, 5, 8]
    assert [epoch for epoch in range(10) if found.saves_after(epoch)] == [4, 9]
    assert not any(config(10, 8, 1, checkpoint_freq=0).saves_after(epoch) for epoch in range(10))


def test_scaleup_function() -> None:
    assert executors_wanted(lambda epoch, most: min(epoch + 1, most), 2, 4) == 3
    for nonsense in (0, 5, None, 2.0, True):
        with pytest.warns(UserWarning, match=r"scaleup_function\(2, 4\) returned .* from 1 to 4"):
            assert executors_wanted(lambda epoch, most, answer=nonsense: answer, 2, 4) is None  # type: ignore[misc]
