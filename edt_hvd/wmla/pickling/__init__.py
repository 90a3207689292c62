"""Pickles of a program's training: functions and classes by value, and what goes along."""
