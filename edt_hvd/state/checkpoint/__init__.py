"""Checkpoints: the training state on disk.

==============  =================================================================
`checkpoints`   when they are written, and how training goes on from one
`writer`        writing in the background
`storage`       one checkpoint: its files, written and read
`directory`     the folder of all checkpoints: names, retention, quarantine
`portable`      values in a form that ``torch.load(weights_only=True)`` reads
==============  =================================================================
"""
