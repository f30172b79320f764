"""The front end: from the text of a hinted statement to a join block, and back into the text."""
