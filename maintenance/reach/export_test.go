package reach

// NewSmallSet returns a set that keeps so few paths exactly.
func NewSmallSet(expected int64, exact int) *Set { return newSet(expected, exact) }
