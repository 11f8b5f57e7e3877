"""Exercises whose answer is an example: the check verifies its property instead of comparing.

One function an exercise, named like the exercise with "_" for "-". It takes the answer and returns None if
the answer has the property, or else a sentence that says what is missing. It looks at the answer's type
first, takes under 2 s, and compares with no stored solution. Whatever it needs is imported inside it.

    def tree_4(answer):
        \"\"\"A pair (sigma, alpha) with 0 < alpha < 1 at which add is the larger direction.\"\"\"
        …
"""
