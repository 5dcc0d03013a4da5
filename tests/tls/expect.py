"""What checks expect."""


def equal(got, expected):
    """Fails unless the two are equal."""
    if got != expected:
        raise AssertionError(f"got {str(got)[:300]!r}, expected {str(expected)[:300]!r}")


def within(part, text):
    """Fails unless the text has this part."""
    if part not in text:
        raise AssertionError(f"{part!r} is not in {text[:600]!r}")
