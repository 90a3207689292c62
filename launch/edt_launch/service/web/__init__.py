"""The web interface: pages for browsers."""
