"""Tests of the wheel as users install it: `make test-dist`."""
