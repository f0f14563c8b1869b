"""Tables: reading files of samples, encoding their columns as numbers, and models of tables."""
