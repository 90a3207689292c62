"""HTTP: listening, middleware, errors as problems, and what requests are given."""
