"""What is computed: generic functions, styles, the lazy tree. Knows no array type, no backend."""
