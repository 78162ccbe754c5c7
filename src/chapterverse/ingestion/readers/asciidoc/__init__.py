"""The AsciiDoc reader: lines, blocks, inline text, and the book that the files of a folder make up."""
