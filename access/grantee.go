package access

import (
	"fmt"
	"strings"

	"moorage"
)

// Everyone is the role of each authenticated caller. It has no record and takes no members. It can
// itself be a member of a role.
const Everyone = "everyone"

// GranteeBytesMax bounds the name of a principal or role.
const GranteeBytesMax = 1024

// GranteeKind is the kind of a grantee's name.
type GranteeKind uint8

// The kinds of grantees.
const (
	Nobody      GranteeKind = iota
	IsPrincipal             // "corp:ann": an alias, a colon, a subject
	IsRole                  // "analysts": a role that has a record, or everyone
	IsTokenRole             // "corp/analysts": an alias, a slash, a role that the issuer names
)

// GranteeOf returns the kind of grantee that name names, and Nobody if name is not valid. The first
// colon or slash decides, so a name has only one kind.
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

// isWord reports whether text is the name of a role, or with strict rules an alias.
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

// CheckGrantee reports an error if a grant to name cannot be made. The error describes a valid
// name.
func CheckGrantee(name string) error {
	if GranteeOf(name) != Nobody {
		return nil
	}
	return fmt.Errorf(
		"%q is neither a principal (issuer:subject), a role (letters, digits, - _ .) nor a token role (issuer/role)",
		name)
}
