"""The cache of replies: each usable reply of a judge is kept, so that it is paid for once."""
