"""What a blob is that is no rows of a stream, in the place of the number of the stream."""

#: A decision of the driver, and what a router tells a host.
DECISION, TOLD = -1, -2
#: Partial results on their way, and the report of a host.
PARTIALS, REPORT = -3, -4
