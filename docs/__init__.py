"""The texts, and what draws their pictures, writes their figures, and looks whether an editor finds its way."""
