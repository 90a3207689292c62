"""``edt demo``: one elastic job that grows and shrinks while its user watches."""
