"""The description of the API: OpenAPI, its examples, and the page that shows it."""
