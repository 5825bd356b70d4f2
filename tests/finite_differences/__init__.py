"""Every function of the catalogue, by every way there is."""
