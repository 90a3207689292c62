"""What `edt` says to a service over its REST interface, and how it shows the answers."""
