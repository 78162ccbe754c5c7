"""The AsciiDoc reader: lines, blocks, inline text, and the project that the files of a folder form."""
