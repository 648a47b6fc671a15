"""Taking times in workers: forwards in turn, and a timer for each kind of device."""
