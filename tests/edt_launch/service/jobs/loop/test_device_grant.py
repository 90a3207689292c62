"""Which devices a job holds, by its file and its events."""

from hypothesis import given
from hypothesis import strategies as st

from edt_launch.allocator.model import HostDevices
from edt_launch.cluster.allocation import HostSlots, parse
from edt_launch.service.jobs.loop.device_grant import DeviceGrant, leaving, read, write
from edt_launch.service.jobs.loop.progress import LauncherRun

HELD = st.dictionaries(
    st.sampled_from(["n1", "n2", "node-3.example"]),
    st.lists(st.sampled_from(["0", "1", "GPU-5f/2"]), min_size=1, max_size=3, unique=True),
    max_size=3,
).map(lambda hosts: tuple(HostDevices(host, tuple(devices)) for host, devices in hosts.items()))


@given(st.integers(1, 2**40), HELD.filter(len), HELD, st.booleans())
def test_what_is_written_is_read(
    generation: int, held: tuple[HostDevices, ...], left: tuple[HostDevices, ...], at_once: bool
) -> None:
    grant = DeviceGrant(generation, held, left, at_once)
    assert read(write(grant)) == grant
    assert parse(write(grant)).slots == grant.size


def test_a_launcher_sees_how_the_source_says_that_a_host_is_reached() -> None:
    listed = {"a": HostSlots("a", 4, ("0", "1", "2", "3"), "ssh", "/opt/edt/bin/edt")}
    grant = DeviceGrant(7, (HostDevices("a", ("2",)), HostDevices("b", ("0",))))
    assert write(grant, listed).endswith(
        "\na:1 devices=2 transport=ssh agent=/opt/edt/bin/edt\nb:1 devices=0\n"
    )
    assert read(write(grant, listed)) == grant


def test_a_launcher_sees_nothing_of_what_is_leaving() -> None:
    text = write(DeviceGrant(7, (HostDevices("a", ("0",)),), (HostDevices("b", ("1", "2")),)))
    assert text == "# edt allocation v1 generation=7\n# leaving b:2 devices=1,2\na:1 devices=0\n"


HOLDING = DeviceGrant(7, (HostDevices("a", ("0",)),), (HostDevices("a", ("1",)),))


def test_a_device_is_left_when_its_generation_is_followed_and_its_worker_gone() -> None:
    before = (HostDevices("a", ("1",)),)
    assert leaving(HOLDING, None) == before
    assert leaving(HOLDING, LauncherRun(following=6)) == before
    assert leaving(HOLDING, LauncherRun(following=7, workers=((0, "a", "0"), (1, "a", "1")))) == before
    assert leaving(HOLDING, LauncherRun(following=7, workers=((0, "a", "0"),))) == ()
