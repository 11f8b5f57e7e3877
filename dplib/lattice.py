from .results import NoBracketError
def side_log_delta(parts, epsilon, direction): raise NoBracketError("lattice: under construction")
def side_epsilon(parts, delta, direction): raise NoBracketError("lattice: under construction")
