"""One simulator per device, at the level of edges and bytes; each is written from its protocol, not from the driver."""
