package access

import (
	"fmt"
	"strings"

	"moorage"
)

// Everyone is the role that all authenticated callers have. It has no record and no list of
// members. It can be a member of another role.
const Everyone = "everyone"

// GranteeBytesMax is the maximum length of the name of a principal or role.
const GranteeBytesMax = 1024

// GranteeKind is the kind of a grantee's name.
type GranteeKind uint8

// The kinds of grantees.
const (
	Nobody      GranteeKind = iota
	IsPrincipal             // "corp:ann": an alias, a colon, a subject
	IsRole                  // "analysts": a role that has a record, or everyone
	IsTokenRole             // "corp/analysts": an alias, a slash, a role in the issuer's tokens
)

// GranteeOf returns the kind of grantee for a name, or Nobody if the name is not valid. The first
// colon or slash in the name decides, so a name has only one kind.
func GranteeOf(name string) GranteeKind {
	if len(name) > GranteeBytesMax || name == moorage.Anonymous().Name {
		return Nobody
	}
	for _, r := range name {
		if r < ' ' || r == 0x7f || r == '�' {
			return Nobody
		}
	}
	at := strings.IndexAny(name, ":/")
	switch {
	case at < 0 && isWord(name, true):
		return IsRole
	case at > 0 && isWord(name[:at], false) && at < len(name)-1:
		if name[at] == ':' {
			return IsPrincipal
		}
		return IsTokenRole
	}
	return Nobody
}

// If role is true, isWord reports whether text can be the name of a role. Otherwise it reports
// whether text can be an alias, with stricter rules.
func isWord(text string, role bool) bool {
	for i, r := range text {
		switch {
		case r >= 'a' && r <= 'z':
		case i > 0 && (r >= '0' && r <= '9' || r == '-'):
		case role && (r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || i > 0 && (r == '_' || r == '.')):
		default:
			return false
		}
	}
	return text != ""
}

// CheckGrantee returns an error if a grant to name is not possible. The error describes valid
// names.
func CheckGrantee(name string) error {
	if GranteeOf(name) != Nobody {
		return nil
	}
	return fmt.Errorf(
		"%q is neither a principal (issuer:subject), a role (letters, digits, - _ .) nor a token role (issuer/role)",
		name)
}
