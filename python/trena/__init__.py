"""Trena: a Trainium you can run anywhere."""
