"""Operations that triggers keep: their order, their numbers, their end."""
