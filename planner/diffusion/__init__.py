"""Load diffusion: which host joins what, so that nothing is missed and nothing is doubled.

Two ways to route rows, both by time alone, so any join condition will do:

- :mod:`aligned`: one stream is the master, its segments are dealt out, the others follow it (ATR);
- :mod:`coordinated`: every segment lives somewhere, and new rows travel to where their partners are (CTR).

Times are cut into ticks, short pieces of equal length; a segment is a run of ticks. All decisions are
functions of what was routed before and of the loads that were told, so that whoever repeats a batch routes
it alike.
"""
