"""Scripts of the project: they make the demo, pages and fixtures, and check the house."""
