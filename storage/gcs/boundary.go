package gcs

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"moorage/storage"
	"moorage/storage/cloud"
)

const (
	// rulesMax is the maximum number of rules in a boundary. expressionMax is the maximum number of
	// characters in the condition of a rule. Source: Security Token Service API, AccessBoundary.
	rulesMax      = 10
	expressionMax = 2048
)

// The roles that boundaries allow.
const (
	roleRead  = "inRole:roles/storage.objectViewer"
	roleWrite = "inRole:roles/storage.objectUser"
)

// boundary is a credential access boundary, which limits a token. Its rules are additive. Source:
// Security Token Service API, Options.
type boundary struct {
	AccessBoundary struct {
		Rules []rule `json:"accessBoundaryRules"`
	} `json:"accessBoundary"`
}

// rule allows the actions of a role in one bucket, if a condition holds.
type rule struct {
	Permissions []string   `json:"availablePermissions"`
	Resource    string     `json:"availableResource"`
	Condition   *condition `json:"availabilityCondition,omitempty"`
}

type condition struct {
	Expression string `json:"expression"`
}

// boundaryFor returns the boundary that allows the first of locations, and as many of the others as
// fit. It returns ErrUnscopable if no boundary allows exactly the first one.
func boundaryFor(locations []storage.Location, write bool) (made boundary, err error) {
	for i, location := range locations {
		added, err := rulesFor(location, write)
		if err != nil && i == 0 {
			return boundary{}, err
		}
		if err != nil || len(made.AccessBoundary.Rules)+len(added) > rulesMax {
			break
		}
		made.AccessBoundary.Rules = append(made.AccessBoundary.Rules, added...)
	}
	if len(made.AccessBoundary.Rules) == 0 {
		return boundary{}, fmt.Errorf("%w: there are no locations", storage.ErrUnscopable)
	}
	return made, nil
}

// rulesFor returns the rules that allow reading at and below a location. If write is true, they
// also allow writing there, except for the catalog's own files. The location in a rule ends in a
// slash, so that a rule for "tab" does not allow the sibling "table".
func rulesFor(location storage.Location, write bool) (rules []rule, err error) {
	if !bucketPattern.MatchString(location.Authority) {
		return nil, fmt.Errorf("%w: %s: that is not a valid name of a bucket", storage.ErrUnscopable, location)
	}
	bucket, folder := "projects/_/buckets/"+location.Authority, cloud.Below(location.Path[1:])
	allow := func(role, expression string) {
		if utf8.RuneCountInString(expression) > expressionMax {
			err = fmt.Errorf("%w: %s: the condition has more than %d characters", storage.ErrUnscopable, location,
				expressionMax)
		}
		made := rule{Permissions: []string{role}, Resource: "//storage.googleapis.com/" + bucket}
		if expression != "" {
			made.Condition = &condition{expression}
		}
		rules = append(rules, made)
	}
	objects, folders := startsWith(bucket+"/objects/"+folder), startsWith(bucket+"/folders/"+folder)
	if folder == "" { // the whole bucket
		allow(roleRead, "")
	} else {
		// Allow objects, folders (in buckets that have them), and listings.
		allow(roleRead, objects+" || "+folders+" || "+
			"api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith("+quote(folder)+")")
	}
	if write {
		// Rules are additive, so the exception must be in the rule that allows writes.
		allow(roleWrite, "("+objects+" && !resource.name.endsWith("+quote(storage.MetadataEnding)+")) || "+folders)
	}
	return rules, err
}

func startsWith(name string) string { return "resource.name.startsWith(" + quote(name) + ")" }

// quote quotes text as a string literal of the Common Expression Language. text must not contain
// control characters; locations have none.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
