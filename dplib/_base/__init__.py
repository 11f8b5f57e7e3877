"""What every room stands on: checks of arguments, logarithms of sums, random blocks, progress bars, lazy imports."""
