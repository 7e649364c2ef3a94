"""The threads and processes of a session: the writer, the predictor, and the decoders.

Belongs here: what runs in its own thread or process. Does not belong here: code that knows HTTP.
"""
