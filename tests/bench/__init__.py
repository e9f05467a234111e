"""Measurements of the product as it ships: `./dev bench` runs them all and writes BENCHMARKS.md."""
