"""What runs the jobs: decides who gets which devices, and sees to it that it happens."""
