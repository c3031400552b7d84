package metadata

// CheckedJSON is the text of one JSON value that its owner has found to be sound: RFC 8259, valid UTF-8, no lone surrogates and no
// key twice in one object, at any depth. Its methods do not look for such faults again, so what they return for text that has some is
// undefined. All else is as in the functions of this package for text that nobody has checked, the errors and the bound of depth
// included.
type CheckedJSON []byte

// Updates is DecodeUpdates.
func (j CheckedJSON) Updates() ([]Update, error) {
	return decodeEach(j.decoder(), "metadata update", decodeUpdate)
}

// Requirements is DecodeRequirements.
func (j CheckedJSON) Requirements() ([]Requirement, error) {
	return decodeEach(j.decoder(), "requirement", decodeRequirement)
}

// ViewUpdates is DecodeViewUpdates.
func (j CheckedJSON) ViewUpdates() ([]ViewUpdate, error) {
	return decodeViewUpdates(j.decoder())
}

// ViewRequirements is DecodeViewRequirements.
func (j CheckedJSON) ViewRequirements() ([]ViewRequirement, error) {
	return decodeEach(j.decoder(), "requirement", decodeViewRequirement)
}

func (j CheckedJSON) decoder() *decoder {
	d := newDecoder(j)
	d.reread = true
	return d
}
