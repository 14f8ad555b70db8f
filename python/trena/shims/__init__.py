"""Stand-ins for packages that scripts import beside NKI, when the real ones are not installed."""
