package moorage

// Page selects a part of a list that is ordered by name.
type Page struct {
	After string // exclusive; from the start if empty
	Limit int    // the most names; 0 for all
}
