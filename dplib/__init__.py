"""dplib: certified privacy accounting for sampled Gaussian mechanisms."""
