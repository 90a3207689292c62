"""The commands of torchelastic: the program is run by `edt torchrun`."""
