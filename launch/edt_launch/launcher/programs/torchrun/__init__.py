"""Programs written for `torchrun`: its command line, its workers' variables, its logs and error files.

`edt_hvd.torchrun` is the half inside the workers. Plain torchrun, without `edt torchrun`, uses
`edt_rendezvous` instead.
"""
