"""What every room stands on: checks of arguments, logarithms of sums, random blocks, checkpoints, lazy imports."""
