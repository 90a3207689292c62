"""Ray: a cluster's nodes are the hosts, and its autoscaler brings more of them.

`source` is what `cluster.sources` lists. It starts `bridge`, the only process that imports Ray: Ray's client
ends its process when the cluster's head is gone, which must end neither a job nor a pool. On each node, an
actor of `holder` keeps devices for a pool and starts agents. `nodes` and `holding` decide, and do no I/O.
"""
