"""The pages of the viewer: each module computes the content of one kind of page, and its template renders it.

Runs from the run cache and the parameters of a request come in; HTML goes out.
Nothing a model or a user wrote becomes markup: templates escape all values.
"""
