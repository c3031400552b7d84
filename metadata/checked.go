package metadata

// CheckedJSON is the text of one JSON value that its owner has found to be sound: RFC 8259, valid UTF-8, no lone surrogates and no
// key twice in one object, at any depth. Its methods do not look for such faults again, so what they return for text that has some is
// undefined. They check all else, and that the text is not nested more than 500 deep. What they return may refer to the text, which
// must not be modified. It is safe for concurrent use.
type CheckedJSON []byte

// Updates reads the updates of a commit of a table, a JSON array. Actions are compared without regard to letter case, and the earlier
// names of some members are understood. What is malformed or not an update of a table is KindBadRequest; what could be read but never
// applied is KindIllegalArgument. The result is in the order of the request.
// Source: REST specification, TableUpdate; Java MetadataUpdateParser.
func (j CheckedJSON) Updates() ([]Update, error) {
	return decodeEach(newDecoder(j), "metadata update", decodeUpdate)
}

// Requirements reads the requirements of a commit of a table, a JSON array. Types are compared without regard to letter case, unknown
// members are ignored. What is malformed or unknown is KindBadRequest. The result is in the order of the request.
// Source: REST specification, TableRequirement; Java UpdateRequirementParser.
func (j CheckedJSON) Requirements() ([]Requirement, error) {
	return decodeEach(newDecoder(j), "requirement", decodeRequirement)
}

// ViewUpdates reads the updates of a commit of a view, a JSON array. Actions are compared without regard to letter case, and the
// earlier names of some members are understood. What is malformed, not an update of a view, or more than 1,000 updates is
// KindBadRequest. The result is in the order of the request.
// Source: REST specification, ViewUpdate; Java MetadataUpdateParser.
func (j CheckedJSON) ViewUpdates() ([]ViewUpdate, error) {
	return decodeViewUpdates(newDecoder(j))
}

// ViewRequirements reads the requirements of a commit of a view, a JSON array. Requirements of tables are accepted here and never
// hold. What is malformed or unknown is KindBadRequest. The result is in the order of the request.
// Source: REST specification, ViewRequirement; Java UpdateRequirementParser.
func (j CheckedJSON) ViewRequirements() ([]ViewRequirement, error) {
	return decodeEach(newDecoder(j), "requirement", decodeViewRequirement)
}
