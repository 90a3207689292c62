"""What a process finds on its machine: accounts, folders, ports, certificates, variables."""
