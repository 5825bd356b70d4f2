"""What others get wrong: the mathematically right answer, demanded in every way to compute it."""
