"""What the chapters use and a practitioner does not: figure style, checks of exercises, theory of small cases, studies.

>>> from dplib.lessons import one_step
>>> one_step.unsampled_epsilon(0.0, 0.5)
0.0
"""
