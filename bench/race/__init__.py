"""The race: the product against other frameworks' services, measured in one run with the same model and embedder.

`racers` says who runs and how each is spoken to, `stub` is the model and the embedder of all, `processes` and `client`
are the means, `phases` what is measured, `figures` the arithmetic and the table. Never used by the product.
"""
