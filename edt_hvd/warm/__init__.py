"""The warm server: one process a host that has imported what a job needs, and forks its workers.

================  ==========================================================
`main`            the process: what is imported, whom it listens to, its end
`imports`         what a program imports, found without running it
`random_numbers`  which generators imports have seeded; new seeds
`server`          the loop: requests in, forked workers out
`worker`          how a fork becomes a worker, and runs the program
================  ==========================================================

`edt_launch.agent.warm.server` starts it, and describes the conversation; `edt_messages.forking` has the
messages.
"""
