package client

// Protection reports whether an object is protected from drops.
type Protection struct {
	Protected bool `json:"protected"` // the object itself
	// By is the innermost container that also protects the object. It is nil if no container does.
	By *Object `json:"protected-by,omitempty"`
}
