package metadata

import "moorage/internal/jsontext"

// DecodeUpdates reads the updates of a commit of a table, a JSON array. It compares actions without
// regard to letter case and understands the earlier names of some members. Malformed input and
// updates that a table does not have are KindBadRequest. An update that can be read but never
// applied is KindIllegalArgument. The result is in the order of the request. Source: REST
// specification, TableUpdate; Java MetadataUpdateParser.
func DecodeUpdates(j jsontext.Checked) ([]Update, error) {
	return decodeEach(j.Reader(), "metadata update", decodeUpdate)
}

// DecodeRequirements reads the requirements of a commit of a table, a JSON array. It compares types
// without regard to letter case and ignores unknown members. Malformed or unknown requirements are
// KindBadRequest. The result is in the order of the request. Source: REST specification,
// TableRequirement; Java UpdateRequirementParser.
func DecodeRequirements(j jsontext.Checked) ([]Requirement, error) {
	return decodeEach(j.Reader(), "requirement", decodeRequirement)
}

// DecodeViewUpdates reads the updates of a commit of a view, a JSON array. It compares actions
// without regard to letter case and understands the earlier names of some members. Malformed input,
// updates that a view does not have, and more than 1,000 updates are KindBadRequest. The result is
// in the order of the request. Source: REST specification, ViewUpdate; Java MetadataUpdateParser.
func DecodeViewUpdates(j jsontext.Checked) ([]ViewUpdate, error) {
	return decodeViewUpdates(j.Reader())
}

// DecodeViewRequirements reads the requirements of a commit of a view, a JSON array. It compares
// types without regard to letter case and ignores unknown members. It accepts requirements of
// tables, which never hold. Malformed or unknown requirements are KindBadRequest. The result is in
// the order of the request. Source: REST specification, ViewRequirement; Java
// UpdateRequirementParser.
func DecodeViewRequirements(j jsontext.Checked) ([]ViewRequirement, error) {
	return decodeEach(j.Reader(), "requirement", decodeViewRequirement)
}
