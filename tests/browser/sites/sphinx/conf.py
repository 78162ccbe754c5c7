"""The same handbook for Sphinx."""

project = "The Skerry Light"
html_js_files = [
    (
        "http://chapterverse.test/widget.js",
        {"async": "async", "data-title": "Ask the handbook", "data-prefix": "/"},
    ),
]
