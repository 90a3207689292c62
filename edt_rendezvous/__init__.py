"""The rendezvous back end `edt` of torchrun: nodes and ranks come from an allocation file, once it changes.

torchrun imports this package through the entry point ``edt`` of the group ``torchrun.handlers``; so do
programs that import `torch.distributed.elastic`. Besides torch it imports what reads allocations.
Under `edt torchrun` nobody needs it: `edt_launch.launcher.programs.torchrun` does all that.
"""
