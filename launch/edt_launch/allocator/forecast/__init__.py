"""What would come: predicted starts, and devices that jobs could use besides."""
