"""The simulation of a night at scale: calls, invocations, minutes and dollars for 10^6 to 10^10 objects."""
