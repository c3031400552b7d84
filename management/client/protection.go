package client

// Protection is whether an object can be dropped.
type Protection struct {
	Protected bool `json:"protected"` // the object itself
	// By is the innermost container that protects the object too. It is nil if there is none.
	By *Object `json:"protected-by,omitempty"`
}
