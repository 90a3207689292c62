"""What a job runs: the interface of a program, and the kinds of programs there are."""
