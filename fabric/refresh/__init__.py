"""Commands that refresh the data files of fabric from AWS."""
