"""Who does the work of a session: the writer, the predictor, and the processes that decode.

Here goes what runs in a thread or process of its own. What reads or writes HTTP does not.
"""
