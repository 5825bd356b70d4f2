"""The ground floor: specs, nodes and graphs, operations and the one door, recording state."""
