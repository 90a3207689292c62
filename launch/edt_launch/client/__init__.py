"""What `edt` says to a service, and how it shows the answers. Knows the service's REST interface, not the service."""
