"""What functions that users write do, by their source and their code: what they capture, what they write."""
