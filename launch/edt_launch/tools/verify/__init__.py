"""``edt verify``: do a script's bits depend on the number of workers, and if so, where and why?"""
