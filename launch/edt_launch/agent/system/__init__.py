"""What an agent asks of the kernel: processes, orphans, and ends that follow one another."""
