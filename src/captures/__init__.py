"""Run the examples, record what they said, and put it into pages."""
