"""The pages of the viewer: each module works out what one kind of page shows, and its template puts that into words.

Runs from the run cache and the parameters of a request come in; HTML goes out.
Nothing a model or a user wrote becomes markup: templates escape whatever is put into them.
"""
