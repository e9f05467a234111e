"""Models of the apparatus, written from the physics and never from the product that watches them."""
