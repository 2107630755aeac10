"""What runs inside a sandbox to judge a Python answer, on the standard library alone.

In come the code and the tests, over a socket; out come messages about what each test saw.
Nothing here may trust what the answer's process says, and nothing here imports another room.
"""
