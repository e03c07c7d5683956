"""What tests of C workers need beside worker_driver."""
import os

YES_OR_NO = {"ceil_mode", "transA", "transB"}


def as_c_writes(graph):
    """A graph of worker_driver as prony writes it, because its reader is strict: attributes that
    say yes or no are true or false; a loss has none."""
    for node in graph["nodes"]:
        attributes = node["attributes"]
        for key in YES_OR_NO & set(attributes):
            attributes[key] = bool(attributes[key])
        if node["op"] == "SoftmaxCrossEntropyLoss":
            attributes.pop("reduction", None)
    return graph


def end(driver):
    """Ends a driver's process and gives its descriptors back, whatever state it is in."""
    driver.process.kill()
    for stream in (driver.requests, driver.replies):
        try:
            stream.close()
        except OSError:
            pass  # what was still to be sent has no reader
    driver.process.wait()
    if driver.shared_fd is not None:
        os.close(driver.shared_fd)
        driver.shared_fd = None
