"""NKI kernels of our own. Each module's make(nki, nisa, nl) builds its kernels for one implementation of NKI."""
