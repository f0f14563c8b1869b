"""What ``ocdl bench`` measures, and the same networks written with other libraries."""
