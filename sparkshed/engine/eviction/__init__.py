"""Windows that may hold so many rows and no more: who leaves when one more comes."""
