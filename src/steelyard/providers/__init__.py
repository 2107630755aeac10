"""Models and other things that can be asked, one file per wire format."""
