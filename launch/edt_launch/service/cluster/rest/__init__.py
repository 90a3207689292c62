"""The REST interface of hosts, shares and the timeline."""
