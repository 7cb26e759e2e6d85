"""Reply cache: stores each usable reply of a judge, so that it is paid for once."""
