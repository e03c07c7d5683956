"""The one exception that has a status of the protocol."""


class WorkerError(Exception):
    """status: unsupported, missing, out-of-memory, crashed or invalid; text: one line for a
    person."""

    def __init__(self, status, text):
        Exception.__init__(self, text)
        self.status = status
