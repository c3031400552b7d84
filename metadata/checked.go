package metadata

import "moorage/internal/jsontext"

// DecodeUpdates reads the updates of a commit of a table, a JSON array. Actions are compared without regard to letter case, and the earlier
// names of some members are understood. What is malformed or not an update of a table is KindBadRequest; what could be read but never
// applied is KindIllegalArgument. The result is in the order of the request.
// Source: REST specification, TableUpdate; Java MetadataUpdateParser.
func DecodeUpdates(j jsontext.Checked) ([]Update, error) {
	return decodeEach(newDecoder(j), "metadata update", decodeUpdate)
}

// DecodeRequirements reads the requirements of a commit of a table, a JSON array. Types are compared without regard to letter case, unknown
// members are ignored. What is malformed or unknown is KindBadRequest. The result is in the order of the request.
// Source: REST specification, TableRequirement; Java UpdateRequirementParser.
func DecodeRequirements(j jsontext.Checked) ([]Requirement, error) {
	return decodeEach(newDecoder(j), "requirement", decodeRequirement)
}

// DecodeViewUpdates reads the updates of a commit of a view, a JSON array. Actions are compared without regard to letter case, and the
// earlier names of some members are understood. What is malformed, not an update of a view, or more than 1,000 updates is
// KindBadRequest. The result is in the order of the request.
// Source: REST specification, ViewUpdate; Java MetadataUpdateParser.
func DecodeViewUpdates(j jsontext.Checked) ([]ViewUpdate, error) {
	return decodeViewUpdates(newDecoder(j))
}

// DecodeViewRequirements reads the requirements of a commit of a view, a JSON array. Requirements of tables are accepted here and never
// hold. What is malformed or unknown is KindBadRequest. The result is in the order of the request.
// Source: REST specification, ViewRequirement; Java UpdateRequirementParser.
func DecodeViewRequirements(j jsontext.Checked) ([]ViewRequirement, error) {
	return decodeEach(newDecoder(j), "requirement", decodeViewRequirement)
}
