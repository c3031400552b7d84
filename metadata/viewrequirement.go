package metadata

import (
	"slices"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// ViewRequirement is a condition of a commit on the view that it changes. It is immutable, and safe
// for concurrent use.
type ViewRequirement struct {
	kind string // type in lower case
	uuid string // of assert-view-uuid
}

const assertViewUUID = "assert-view-uuid"

func decodeViewRequirement(o jsontext.Fields) (r ViewRequirement, err error) {
	r.kind, err = discriminator(o, "update requirement", "type")
	if err != nil {
		return r, err
	}
	if r.kind == assertViewUUID {
		r.uuid, _, err = o.Str("uuid")
	} else {
		_, err = decodeRequirement(o)
	}
	return r, err
}

// CheckView checks requirements, in order, against the view. It returns the error of the first
// requirement that fails. The error is KindCommitFailed if the requirement does not hold, and
// KindValidation if it is not for views.
func CheckView(d *ViewDocument, requirements []ViewRequirement) error {
	for _, r := range requirements {
		switch {
		case r.kind != assertViewUUID:
			return moorage.Errorf(moorage.KindValidation, "Cannot validate %s against a view", r.kind)
		case !strings.EqualFold(r.uuid, d.uuid):
			return unmet("view UUID does not match: expected %s != %s", d.uuid, jsontext.Clip(r.uuid))
		}
	}
	return nil
}

// AssertsViewUUID reports whether one of requirements is assert-view-uuid.
func AssertsViewUUID(requirements []ViewRequirement) bool {
	return slices.ContainsFunc(requirements, func(r ViewRequirement) bool { return r.kind == assertViewUUID })
}
