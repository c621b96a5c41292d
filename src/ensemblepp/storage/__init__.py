"""Files on disk, written whole and read back checked."""
