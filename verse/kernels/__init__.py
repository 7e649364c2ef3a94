"""The hot mathematics the learners share: one vector per network, losses, random draws."""
