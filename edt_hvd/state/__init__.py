"""What a worker needs to go on where the others are: copied, compared and brought to newcomers."""
