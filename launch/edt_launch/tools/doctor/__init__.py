"""``edt doctor``: what is on this machine, and which hosts reach each other."""
