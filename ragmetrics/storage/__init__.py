"""The store: everything a night leaves behind, as files under one URI."""
