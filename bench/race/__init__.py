"""The race: compares the product with services built on other frameworks, in one run with the same model and embedder.

`racers` defines the services and their protocols, `stub` is the model and the embedder that all services use,
`processes` and `client` start and call them, `phases` measures, and `figures` computes the results and the table. The
product does not use this package.
"""
