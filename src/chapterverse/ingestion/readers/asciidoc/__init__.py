"""AsciiDoc: the lines of a page, its blocks, the text inside them, and the book that the files of a folder make."""
