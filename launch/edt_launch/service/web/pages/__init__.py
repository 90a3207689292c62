"""The pages, a router each: a request becomes a view model, which a template shows."""
