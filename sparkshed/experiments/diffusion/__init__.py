"""A cluster that is simulated, in which the real routing code runs.

- :mod:`hosts`: what hosts have, and what rows cost them;
- :mod:`arrivals`: streams, as numbers of rows in each tick;
- :mod:`sheet`: what hosts are to do in an interval, as routes have it;
- :mod:`cluster`: what they get done, with the CPU, memory and network that they have;
- :mod:`aligned`, :mod:`coordinated`, :mod:`rivals`: ways to route rows;
- :mod:`figures`, :mod:`balance`, :mod:`timing`, :mod:`scaling`: experiments.

Rows have no values here. A row of one stream matches a row of another with a probability, so numbers of rows
are all that is needed to know how many partial results there are.
"""
