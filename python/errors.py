"""The exception that carries a status of the worker protocol."""


class WorkerError(Exception):
    """status: unsupported, missing, out-of-memory, crashed or invalid; text: one line for the user."""

    def __init__(self, status, text):
        Exception.__init__(self, text)
        self.status = status
