"""The OpenAPI description, its examples, and the page that shows it."""
