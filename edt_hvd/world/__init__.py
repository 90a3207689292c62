"""The workers that train together: connection to the launcher, generations, preemption, heartbeats."""
