"""Records of what was found, and the files that hold them."""
