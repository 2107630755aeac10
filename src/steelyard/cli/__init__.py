"""The command line, and the pytest plug-in."""
