"""PLD_accounting's answers, with its default settings. Imported by _child.py only."""

from PLD_accounting import gaussian_allocation_epsilon_range


def pld_allocation(sigma, rounds, group, epochs, delta):
    upper, lower = gaussian_allocation_epsilon_range(
        sigma=sigma, num_steps=rounds, num_selected=group, num_epochs=epochs, delta=delta
    )
    if group > 1:  # both ends are those of one round in each of k blocks, which is above k of so many rounds
        return {"direction": "upper", "value": float(upper)}
    return {"direction": "bracket", "value": float(upper), "lower": float(lower)}
