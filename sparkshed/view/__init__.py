"""Looking at a streaming join: while it runs, in a terminal, and afterwards, as a page.

Everything here reads the journal that a join writes into its checkpoint, and needs neither Spark nor a
session.
"""
