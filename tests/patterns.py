"""The law of a record's rounds under minimal separation, by walking through all coins."""


def enumerated(patterns):
    """{rounds of a record: probability} for `rounds`, coins `p`, separation `b` and start `warm` of a dplib `Patterns`."""
    found = {}

    def walk(i, free, taken, probability):
        if i == patterns.rounds:
            found[taken] = found.get(taken, 0.0) + probability
        elif i < free:
            walk(i + 1, free, taken, probability)
        else:
            walk(i + 1, free, taken, probability * (1 - patterns.p))
            walk(i + 1, i + patterns.b, (*taken, i), probability * patterns.p)

    p, b = patterns.p, patterns.b
    free = 1 / (1 + (b - 1) * p)
    starts = [free] + [p * free] * (b - 1) if patterns.warm else [1.0]
    for wait, probability in enumerate(starts):
        walk(0, wait, (), probability)
    return {taken: probability for taken, probability in found.items() if probability > 0}
