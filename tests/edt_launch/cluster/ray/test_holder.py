from edt_launch.cluster.ray.holder import agent_environment


def test_an_agent_has_the_nodes_environment_without_what_ray_sets_for_its_workers() -> None:
    node = {"PATH": "/bin", "HOME": "/root"}
    set_by_ray = {
        "RAY_JOB_ID": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONBREAKPOINT": "x",
        "CUDA_VISIBLE_DEVICES": "",
    }
    assert agent_environment(node | set_by_ray) == node
