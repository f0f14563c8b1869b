"""Tables: files of samples, what their columns become in numbers, and models that know both."""
