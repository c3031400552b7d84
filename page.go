package moorage

// Page selects a part of a list that is ordered by name.
type Page struct {
	After string // the page begins after this name; from the start if empty
	Limit int    // maximum number of names; 0 for no limit
}
