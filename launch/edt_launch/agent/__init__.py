"""`edt agent`: the process on each host that starts workers, passes on what they print, and ends them."""
