"""View models: what templates show, made from the answers and by the permissions of `/api/v1`."""
