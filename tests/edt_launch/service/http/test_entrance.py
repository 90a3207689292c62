from world import World


def test_head_is_get_without_the_body(world: World) -> None:
    job = world.submit(world.ann)["id"]
    for path in ("/", "/jobs", f"/jobs/{job}", f"/jobs/{job}/logs/0", "/cluster", "/nothing"):
        head, get = world.ann.head(path), world.ann.get(path)
        assert (head.status_code, head.content) == (get.status_code, b"")
        assert head.headers.get("content-type") == get.headers.get("content-type")
        assert head.headers.get("content-length") == get.headers.get("content-length")
    assert world.anybody.head("/healthz").status_code == 200
    assert world.anybody.head("/api/v1/jobs").status_code == 401
