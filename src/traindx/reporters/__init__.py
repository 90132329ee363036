"""Report -> text, one reporter a module: terminal, json, html, sarif. None of them judges, none imports torch."""
