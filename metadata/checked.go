package metadata

import "moorage/internal/jsontext"

// DecodeUpdates reads the updates of a commit of a table, a JSON array. It ignores the letter case
// of actions, and accepts the earlier names of some members. It returns KindBadRequest for
// malformed input and for updates that are not for tables. It returns KindIllegalArgument for an
// update that can be read but never applied. The result is in the order of the request. Source:
// REST specification, TableUpdate; Java MetadataUpdateParser.
func DecodeUpdates(j jsontext.Checked) ([]Update, error) {
	return decodeEach(j.Reader(), "metadata update", decodeUpdate)
}

// DecodeRequirements reads the requirements of a commit of a table, a JSON array. It ignores the
// letter case of types, and ignores unknown members. Malformed or unknown requirements are
// KindBadRequest. The result is in the order of the request. Source: REST specification,
// TableRequirement; Java UpdateRequirementParser.
func DecodeRequirements(j jsontext.Checked) ([]Requirement, error) {
	return decodeEach(j.Reader(), "requirement", decodeRequirement)
}

// DecodeViewUpdates reads the updates of a commit of a view, a JSON array. It ignores the letter
// case of actions, and accepts the earlier names of some members. It returns KindBadRequest for
// malformed input, for updates that are not for views, and for more than 1,000 updates. The result
// is in the order of the request. Source: REST specification, ViewUpdate; Java
// MetadataUpdateParser.
func DecodeViewUpdates(j jsontext.Checked) ([]ViewUpdate, error) {
	return decodeViewUpdates(j.Reader())
}

// DecodeViewRequirements reads the requirements of a commit of a view, a JSON array. It ignores the
// letter case of types, and ignores unknown members. It accepts requirements that are for tables,
// but CheckView refuses them. Malformed or unknown requirements are KindBadRequest. The result is
// in the order of the request. Source: REST specification, ViewRequirement; Java
// UpdateRequirementParser.
func DecodeViewRequirements(j jsontext.Checked) ([]ViewRequirement, error) {
	return decodeEach(j.Reader(), "requirement", decodeViewRequirement)
}
