package gcs

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"moorage/storage"
)

const (
	// rulesMax is how many rules a boundary can have, and expressionMax how many characters the
	// condition of one. Source: Security Token Service API, AccessBoundary.
	rulesMax      = 10
	expressionMax = 2048
)

// The roles that a boundary narrows a token to.
const (
	roleRead  = "inRole:roles/storage.objectViewer"
	roleWrite = "inRole:roles/storage.objectUser"
)

// boundary is a credential access boundary: what a token is narrowed to. Its rules add up. Source:
// Security Token Service API, Options.
type boundary struct {
	AccessBoundary struct {
		Rules []rule `json:"accessBoundaryRules"`
	} `json:"accessBoundary"`
}

// rule allows what a role does, in one bucket, where a condition holds.
type rule struct {
	Permissions []string   `json:"availablePermissions"`
	Resource    string     `json:"availableResource"`
	Condition   *condition `json:"availabilityCondition,omitempty"`
}

type condition struct {
	Expression string `json:"expression"`
}

// boundaryFor returns the boundary that allows locations: the first, and as many of the others as
// there is room for. ErrUnscopable: none allows exactly the first one.
func boundaryFor(locations []storage.Location, write bool) (made boundary, err error) {
	role := roleRead
	if write {
		role = roleWrite
	}
	for i, location := range locations[:min(len(locations), rulesMax)] {
		added, err := ruleFor(location, role)
		if err != nil && i == 0 {
			return boundary{}, err
		}
		if err != nil {
			break
		}
		made.AccessBoundary.Rules = append(made.AccessBoundary.Rules, added)
	}
	if len(made.AccessBoundary.Rules) == 0 {
		return boundary{}, fmt.Errorf("%w: there are no locations", storage.ErrUnscopable)
	}
	return made, nil
}

// ruleFor returns the rule that allows a role at and below a location. The slash behind the
// location keeps the sibling "table" out of "tab".
func ruleFor(location storage.Location, role string) (rule, error) {
	made := rule{
		Permissions: []string{role},
		Resource:    "//storage.googleapis.com/projects/_/buckets/" + location.Authority,
	}
	if !bucketPattern.MatchString(location.Authority) {
		return rule{}, fmt.Errorf("%w: %s: no bucket is called so", storage.ErrUnscopable, location)
	}
	folder := under(location.Path[1:])
	if folder == "" {
		return made, nil // all of the bucket
	}
	bucket := "projects/_/buckets/" + location.Authority
	// Objects, the folders of buckets that have some, and listings.
	expression := fmt.Sprintf("resource.name.startsWith(%s) || resource.name.startsWith(%s) || "+
		"api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith(%s)",
		quote(bucket+"/objects/"+folder), quote(bucket+"/folders/"+folder), quote(folder))
	if utf8.RuneCountInString(expression) > expressionMax {
		return rule{}, fmt.Errorf("%w: %s: the condition has more than %d characters", storage.ErrUnscopable, location,
			expressionMax)
	}
	made.Condition = &condition{expression}
	return made, nil
}

// quote spells a text without control characters, which locations have none of, as a string of the
// Common Expression Language.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
