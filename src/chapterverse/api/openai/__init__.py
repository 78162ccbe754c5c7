"""OpenAI's API: chat completions, responses and the list of models."""
