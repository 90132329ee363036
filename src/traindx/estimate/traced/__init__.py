"""The user's own program for two optimizer steps, its storages counted: parameters have no data where they can be faked."""
