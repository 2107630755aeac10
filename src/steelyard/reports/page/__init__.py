"""The parts of the HTML page that the report and the viewer share: templates, style, code in colours, texts cut to fit.

Attempts and texts come in; escaped markup goes out.
Nothing here decides what a page shows.
"""
