"""The libraries ocdl is compared with, one file each."""
