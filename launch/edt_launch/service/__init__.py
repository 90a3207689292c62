"""The job service: users, jobs and their history in a database, and the REST interface to them."""
